"""What can happen in conversations, as frozen values: input of `app.chat_state`. Pure.

Messages that name a chat and come when another one is open change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.localapi.catalogue import Catalogue
from engine.localapi.chats import (
    ChatInfo,
    ChatList,
    ChatSettings,
    DraftingInfo,
    Message,
    MessagePage,
    Preset,
)


@dataclass(frozen=True, slots=True)
class ChatsSought:
    """The person looks for conversations; empty: all of them."""

    query: str


@dataclass(frozen=True, slots=True)
class ChatsListed:
    """Conversations have arrived."""

    query: str
    after: int | None
    """None: from the first on; else these follow what is known."""
    found: ChatList


@dataclass(frozen=True, slots=True)
class ChatsNotListed:
    """They have not."""

    message: str


@dataclass(frozen=True, slots=True)
class ChatBegun:
    """The person wants an empty conversation; nothing is kept of it before its first message."""

    settings: ChatSettings = field(default_factory=ChatSettings)


@dataclass(frozen=True, slots=True)
class ChatOpening:
    """A conversation is being fetched."""

    chat: int


@dataclass(frozen=True, slots=True)
class ChatOpened:
    """It is here, with its newest messages."""

    info: ChatInfo
    page: MessagePage


@dataclass(frozen=True, slots=True)
class ChatNotOpened:
    """It is not."""

    chat: int
    message: str


@dataclass(frozen=True, slots=True)
class OlderWanted:
    """The reader comes near the first message that is known."""

    chat: int


@dataclass(frozen=True, slots=True)
class OlderArrived:
    """Earlier messages are here."""

    chat: int
    page: MessagePage


@dataclass(frozen=True, slots=True)
class OlderMissing:
    """They did not come."""

    chat: int


@dataclass(frozen=True, slots=True)
class ChatSettled:
    """The conversation exists, or has another title or other settings."""

    info: ChatInfo


@dataclass(frozen=True, slots=True)
class ChatSettingsChosen:
    """What the person wants of a conversation that nothing is kept of yet."""

    settings: ChatSettings


@dataclass(frozen=True, slots=True)
class ChatDeleted:
    """A conversation lies in the trash."""

    info: ChatInfo


@dataclass(frozen=True, slots=True)
class ChatRestored:
    """It is back."""

    info: ChatInfo


@dataclass(frozen=True, slots=True)
class UndoExpired:
    """The offer to bring it back is over."""


@dataclass(frozen=True, slots=True)
class ChatRefused:
    """Something that the person wanted was not done; a sentence."""

    message: str


@dataclass(frozen=True, slots=True)
class AnswerAsked:
    """The person wants an answer: to something new, once more, or more of it."""


@dataclass(frozen=True, slots=True)
class AnswerBegun:
    """The engine has kept the question and begins to answer."""

    chat: int
    question: Message | None
    answer: Message


@dataclass(frozen=True, slots=True)
class AnswerGrew:
    """More of the answer."""

    chat: int
    text: str
    tokens: int
    """Of the whole answer."""
    at_s: float
    drafting: DraftingInfo | None = None


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The answer is over, as it is kept."""

    chat: int
    answer: Message


@dataclass(frozen=True, slots=True)
class AnswerLost:
    """No answer was begun, or nothing more of it comes here; a sentence."""

    message: str


@dataclass(frozen=True, slots=True)
class PresetsListed:
    """The ways to begin a conversation."""

    presets: tuple[Preset, ...]


@dataclass(frozen=True, slots=True)
class DraftCounted:
    """How many tokens lie in the composer, and what the context holds."""

    tokens: int
    context_tokens: int


@dataclass(frozen=True, slots=True)
class ModelsListed:
    """The models that Shoal offers, and what they need."""

    catalogue: Catalogue


ChatMessage = (
    ChatsSought
    | ChatsListed
    | ChatsNotListed
    | ChatBegun
    | ChatOpening
    | ChatOpened
    | ChatNotOpened
    | OlderWanted
    | OlderArrived
    | OlderMissing
    | ChatSettled
    | ChatSettingsChosen
    | ChatDeleted
    | ChatRestored
    | UndoExpired
    | ChatRefused
    | AnswerAsked
    | AnswerBegun
    | AnswerGrew
    | AnswerEnded
    | AnswerLost
    | PresetsListed
    | DraftCounted
    | ModelsListed
)
