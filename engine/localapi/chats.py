"""Values of `/shoal/v1/chats`: conversations that the engine keeps.

| call | body → answer |
|---|---|
| `GET /shoal/v1/chats[?query=&after=&limit=&deleted=1]` | → `ChatList`, newest first; `after` is the last one known |
| `POST /shoal/v1/chats` | `ChatSettings` → `ChatInfo` |
| `GET /shoal/v1/chats/ID` | → `ChatInfo` |
| `PATCH /shoal/v1/chats/ID` | `ChatChange` → `ChatInfo` |
| `DELETE /shoal/v1/chats/ID` | → `ChatInfo`; it lies in the trash for a month |
| `POST /shoal/v1/chats/ID/restore` | → `ChatInfo` |
| `GET /shoal/v1/chats/ID/messages[?before=&limit=]` | → `MessagePage`: the end of the branch that is shown, or what lies before a message |
| `GET /shoal/v1/chats/ID/export?format=F` | → text; F is `markdown` or `json` |
| `POST /shoal/v1/chats/ID/answer` | `AnswerRequest` → server-sent `AnswerEvent`s |
| `GET /shoal/v1/chats/ID/answer` | → the same for an answer under way |
| `POST /shoal/v1/chats/ID/stop` | → `ChatInfo`; the answer under way ends with what it has |
| `GET /shoal/v1/presets` | → `PresetList` |
| `PUT /shoal/v1/presets/NAME` | `PresetSettings` → `PresetList` |
| `DELETE /shoal/v1/presets/NAME` | → `PresetList` |
| `POST /shoal/v1/tokens` | `CountRequest` → `TokenCount` |

An answer goes on when its stream closes, and is kept as it grows; `stop` ends it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from engine.localapi.said import Said

MAX_TEXT_CHARS = 1 << 20
MAX_ATTACHMENTS = 16
MAX_TITLE_CHARS = 200
MAX_PAGE = 200


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Speaker(StrEnum):
    """Who says a message, in the words of the chat API."""

    USER = "user"
    ASSISTANT = "assistant"


class Ending(StrEnum):
    """Why a message is over."""

    COMPLETE = "complete"
    LENGTH = "length"
    """The limit for answers, or of the context, was reached."""
    STOPPED = "stopped"
    """The person wanted no more of it."""
    FAILED = "failed"
    """The swarm could not go on."""
    INTERRUPTED = "interrupted"
    """The engine ended meanwhile."""


class Privacy(StrEnum):
    """Who could read a message."""

    LOCAL = "local"
    PRIVATE = "private"
    """Members of a swarm that admits by invite."""
    PUBLIC = "public"


class Sampling(_Request):
    """How answers are drawn; what is None is as the model's makers recommend."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=0, le=1_000_000)
    min_p: float | None = Field(default=None, ge=0, le=1)
    repetition_penalty: float | None = Field(default=None, ge=0.01, le=100)
    max_tokens: int | None = Field(default=None, ge=1, le=1 << 30)
    seed: int | None = Field(default=None, ge=0, le=(1 << 63) - 1)


class ChatSettings(_Request):
    """What a conversation is begun with."""

    title: str = Field(default="", max_length=MAX_TITLE_CHARS)
    """Empty: the first line of the first message."""
    system_prompt: str = Field(default="", max_length=MAX_TEXT_CHARS)
    sampling: Sampling = Sampling()


class ChatChange(_Request):
    """What shall be different; None leaves it."""

    title: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    system_prompt: str | None = Field(default=None, max_length=MAX_TEXT_CHARS)
    sampling: Sampling | None = None
    show: int | None = None
    """A message: show the newest branch that leads through it."""


class ChatSummary(_Answer):
    """One conversation in the list."""

    id: int
    title: str
    updated_unix_s: float
    answering: bool = False
    found: str = ""
    """Where the search has found it: a piece of a message."""


class ChatList(_Answer):
    """Some conversations."""

    chats: tuple[ChatSummary, ...]
    more: bool


class ChatInfo(ChatSummary):
    """One conversation without its messages."""

    created_unix_s: float
    deleted: bool = False
    system_prompt: str = ""
    sampling: Sampling = Sampling()
    leaf: int | None = None
    """The newest message of the branch that is shown."""


class Attachment(_Request):
    """A text file that goes with a message."""

    name: str = Field(min_length=1, max_length=255)
    text: str = Field(max_length=MAX_TEXT_CHARS)


class AttachmentInfo(_Answer):
    """One of them, without its text."""

    name: str
    chars: int


class Message(_Answer):
    """One message."""

    id: int
    parent: int | None
    speaker: Speaker
    text: str
    attachments: tuple[AttachmentInfo, ...] = ()
    siblings: tuple[int, ...] = ()
    """What has been said in this place, this message among them, oldest first."""
    created_unix_s: float
    ending: Ending | None = None
    """None while it is being written."""
    failure: str = ""
    """Why it failed, as a sentence."""
    model: str = ""
    tokens: int = 0
    """Of an answer."""
    seconds: float = 0.0
    """From its first to its last token; of all parts, when it was continued."""
    context_tokens: int = 0
    """Of prompt and answer together."""
    stages: int = 0
    """Stages that it went through."""
    privacy: Privacy | None = None
    left_out: int = 0
    """The oldest messages that did not fit into the context."""


class MessagePage(_Answer):
    """Messages in the order in which they were said."""

    messages: tuple[Message, ...]
    more: bool
    """Whether there are earlier ones."""


class NewMessage(_Request):
    """What the person says."""

    parent: int | None = None
    """The answer that it follows; None: it opens the conversation. Beside another message with this
    parent it opens a branch."""
    text: str = Field(max_length=MAX_TEXT_CHARS)
    attachments: tuple[Attachment, ...] = Field(default=(), max_length=MAX_ATTACHMENTS)
    attachments_of: int | None = None
    """Take along the files of this message too."""


class AnswerRequest(_Request):
    """What is to be answered: exactly one of the three."""

    say: NewMessage | None = None
    again: int | None = None
    """A message of the person: answer it once more, beside what it got before."""
    go_on: int | None = None
    """An answer that ended early: continue it."""


class DraftingInfo(_Answer):
    """How an answer is sped up: several tokens at a time are proposed, and the stages verify them."""

    draft: Literal["off", "ngram", "model"]
    """What proposes now."""
    reason: str
    """Why so, as words."""
    said: tuple[Said, ...] = ()
    """The same, taken apart."""
    tokens_per_round: float = 1.0
    """Of the answer so far; 1 is plain decoding."""


class AnswerEvent(_Answer):
    """What happens to an answer, from `begun` over `text` to `ended`."""

    kind: Literal["begun", "text", "ended"]
    question: Message | None = None
    """With `begun`, if one was said."""
    answer: Message | None = None
    """With `begun` as it is so far, with `ended` whole."""
    text: str = ""
    """With `text`: what is new."""
    tokens: int = 0
    """With `text`: of the whole answer."""
    drafting: DraftingInfo | None = None
    """With `text`, where that is decided as it goes."""


class PresetSettings(_Request):
    """A way to begin conversations."""

    system_prompt: str = Field(default="", max_length=MAX_TEXT_CHARS)
    sampling: Sampling = Sampling()


class Preset(PresetSettings):
    """One with its name."""

    name: str


class PresetList(_Answer):
    """All of them, by name."""

    presets: tuple[Preset, ...]


class CountRequest(_Request):
    """Texts whose tokens shall be counted."""

    texts: tuple[str, ...] = Field(max_length=MAX_ATTACHMENTS + 1)


class TokenCount(_Answer):
    """How much of the context they take."""

    counts: tuple[int, ...]
    context_tokens: int
    """What the model's context holds."""
