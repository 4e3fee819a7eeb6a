"""What the app knows of conversations, and how each message changes it. Pure.

The engine keeps them; here is what a window shows: a part of the list, and the newest part of one
branch of one conversation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from app.chat_messages import (
    AnswerAsked,
    AnswerBegun,
    AnswerEnded,
    AnswerGrew,
    AnswerLost,
    ChatBegun,
    ChatDeleted,
    ChatMessage,
    ChatNotOpened,
    ChatOpened,
    ChatOpening,
    ChatRefused,
    ChatRestored,
    ChatSettingsChosen,
    ChatSettled,
    ChatsListed,
    ChatsNotListed,
    ChatsSought,
    DraftCounted,
    ModelsListed,
    OlderArrived,
    OlderMissing,
    OlderWanted,
    PresetsListed,
    UndoExpired,
)
from engine.localapi.catalogue import Catalogue
from engine.localapi.chats import (
    ChatInfo,
    ChatSettings,
    ChatSummary,
    DraftingInfo,
    Message,
    Preset,
)


class Answering(StrEnum):
    """How far the present answer is."""

    NOT = "not"
    ASKED = "asked"
    """On its way to the engine."""
    WAITING = "waiting"
    """Kept by the engine; no token yet."""
    STREAMING = "streaming"


@dataclass(frozen=True, slots=True)
class Chat:
    """The conversation that is open."""

    id: int | None = None
    """None: nothing of it is kept yet."""
    title: str = ""
    settings: ChatSettings = field(default_factory=ChatSettings)
    turns: tuple[Message, ...] = ()
    """The end of the branch that is shown."""
    more: bool = False
    """Whether there are earlier messages than the first of `turns`."""
    opening: bool = False
    older_coming: bool = False
    answering: Answering = Answering.NOT
    failure: str = ""
    """Why the last thing that was wanted did not happen, as a sentence."""
    said: int = 0
    """How many messages of the composer the engine has taken."""
    tokens_before: int = 0
    """Tokens of the answer when its present part began."""
    first_token_at_s: float = 0.0
    last_token_at_s: float = 0.0
    draft_tokens: int = 0
    drafting: DraftingInfo | None = None
    """How the answer that is written here is sped up; None: not at all."""
    context_tokens: int = 0
    """What the model's context holds; 0 while unknown."""

    @property
    def newest(self) -> Message | None:
        """The last message."""
        return self.turns[-1] if self.turns else None

    @property
    def tokens_per_s(self) -> float:
        """Decode rate of the answer that is, or was last, written here; 0 before its second token."""
        elapsed_s = self.last_token_at_s - self.first_token_at_s
        tokens = (self.newest.tokens if self.newest else 0) - self.tokens_before
        return (tokens - 1) / elapsed_s if tokens > 1 and elapsed_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Chats:
    """The list of conversations, the open one, and what goes with them."""

    open: Chat = field(default_factory=Chat)
    query: str = ""
    listed: tuple[ChatSummary, ...] = ()
    more: bool = False
    known: bool = False
    """Whether the list has arrived once."""
    problem: str = ""
    """Why the list is not here, as a sentence."""
    undo: ChatSummary | None = None
    """What was deleted just now."""
    presets: tuple[Preset, ...] = ()
    catalogue: Catalogue | None = None
    """The models that Shoal offers; None while unknown."""


def apply_to_chats(chats: Chats, message: ChatMessage) -> Chats:
    """The conversations after `message`."""
    match message:
        case ChatsSought(query):
            return replace(chats, query=query)
        case ChatsListed(query, after, found):
            if query != chats.query:
                return chats
            known = chats.listed if after is not None else ()
            have = {summary.id for summary in known}
            fresh = tuple(summary for summary in found.chats if summary.id not in have)
            return replace(chats, listed=(*known, *fresh), more=found.more, known=True, problem="")
        case ChatsNotListed(text):
            return replace(chats, problem=text)
        case ChatSettled(info):
            return _with_info(chats, info)
        case ChatDeleted(info):
            left = tuple(summary for summary in chats.listed if summary.id != info.id)
            gone = chats.open.id == info.id
            return replace(
                chats, listed=left, undo=info, open=_fresh(chats.open) if gone else chats.open
            )
        case ChatRestored(info):
            undo = None if chats.undo and chats.undo.id == info.id else chats.undo
            return replace(_with_info(chats, info), undo=undo)
        case UndoExpired():
            return replace(chats, undo=None)
        case PresetsListed(presets):
            return replace(chats, presets=presets)
        case ModelsListed(catalogue):
            return replace(chats, catalogue=catalogue)
        case AnswerBegun(chat) if chat == chats.open.id:
            after_it = replace(chats, open=_apply_to_open(chats.open, message))
            return _marked(after_it, chat, answering=True)
        case AnswerEnded(chat):
            after_it = replace(chats, open=_apply_to_open(chats.open, message))
            return _marked(after_it, chat, answering=False)
        case _:
            return replace(chats, open=_apply_to_open(chats.open, message))


def _apply_to_open(
    chat: Chat,
    message: ChatBegun
    | ChatOpening
    | ChatOpened
    | ChatNotOpened
    | OlderWanted
    | OlderArrived
    | OlderMissing
    | ChatSettingsChosen
    | ChatRefused
    | AnswerAsked
    | AnswerBegun
    | AnswerGrew
    | AnswerEnded
    | AnswerLost
    | DraftCounted,
) -> Chat:
    match message:
        case ChatBegun(settings):
            return replace(_fresh(chat), settings=settings)
        case ChatOpening(wanted):
            return chat if chat.id == wanted else replace(_fresh(chat), id=wanted, opening=True)
        case ChatOpened(info, page):
            return chat if chat.id != info.id else _opened(chat, info, page.messages, page.more)
        case ChatNotOpened(wanted, text):
            return chat if chat.id != wanted else replace(chat, opening=False, failure=text)
        case OlderWanted(wanted):
            return replace(chat, older_coming=True) if chat.id == wanted else chat
        case OlderMissing(wanted):
            return replace(chat, older_coming=False) if chat.id == wanted else chat
        case OlderArrived(wanted, page):
            if chat.id != wanted or not chat.turns or not page.messages:
                return chat
            if page.messages[-1].id != chat.turns[0].parent:  # another branch is shown by now
                return replace(chat, older_coming=False)
            return replace(
                chat, turns=(*page.messages, *chat.turns), more=page.more, older_coming=False
            )
        case ChatSettingsChosen(settings):
            return replace(chat, settings=settings)
        case ChatRefused(text):
            return replace(chat, failure=text)
        case AnswerAsked():
            return replace(chat, answering=Answering.ASKED, failure="")
        case AnswerBegun(wanted, question, answer):
            return chat if chat.id != wanted else _begun(chat, question, answer)
        case AnswerGrew(wanted, text, tokens, at_s, drafting):
            if chat.id != wanted:
                return chat
            return replace(_grown(chat, text, tokens, at_s), drafting=drafting)
        case AnswerEnded(wanted, answer):
            if chat.id != wanted or not chat.turns or chat.turns[-1].id != answer.id:
                return chat
            return replace(
                chat,
                turns=(*chat.turns[:-1], answer),
                answering=Answering.NOT,
                failure=answer.failure,
            )
        case AnswerLost(text):
            return replace(chat, answering=Answering.NOT, failure=text)
        case DraftCounted(tokens, context_tokens):
            return replace(chat, draft_tokens=tokens, context_tokens=context_tokens)
        case _:
            assert_never(message)


def _fresh(chat: Chat) -> Chat:
    """Another conversation in the place of `chat`; the composer keeps what it has."""
    return Chat(said=chat.said, draft_tokens=chat.draft_tokens, context_tokens=chat.context_tokens)


def _opened(chat: Chat, info: ChatInfo, turns: tuple[Message, ...], more: bool) -> Chat:
    newest = turns[-1] if turns else None
    return replace(
        _fresh(chat),
        id=info.id,
        title=info.title,
        settings=_settings(info),
        turns=turns,
        more=more,
        failure=newest.failure if newest else "",
        answering=Answering.WAITING if newest and newest.ending is None else Answering.NOT,
        tokens_before=newest.tokens if newest else 0,
    )


def _begun(chat: Chat, question: Message | None, answer: Message) -> Chat:
    """Put question and answer below the message that they follow; what stood there is a branch now."""
    first = question or answer
    kept = next(
        (
            chat.turns[: at + 1]
            for at in range(len(chat.turns) - 1, -1, -1)
            if chat.turns[at].id == first.parent
        ),
        (),
    )
    new = (
        (answer,)
        if question is None or (kept and kept[-1].id == question.id)
        else (question, answer)
    )
    return replace(
        chat,
        turns=(*kept, *new),
        more=chat.more if kept else first.parent is not None,
        answering=Answering.WAITING,
        failure="",
        said=chat.said + (question is not None),
        tokens_before=answer.tokens,
        first_token_at_s=0.0,
        last_token_at_s=0.0,
    )


def _grown(chat: Chat, text: str, tokens: int, at_s: float) -> Chat:
    if chat.answering not in (Answering.WAITING, Answering.STREAMING) or not chat.turns:
        return chat
    newest = chat.turns[-1]
    grown = newest.model_copy(update={"text": newest.text + text, "tokens": tokens})
    first = chat.answering is Answering.WAITING
    return replace(
        chat,
        turns=(*chat.turns[:-1], grown),
        answering=Answering.STREAMING,
        # Tokens that came with the first belong to the time before it.
        tokens_before=tokens - 1 if first else chat.tokens_before,
        first_token_at_s=at_s if first else chat.first_token_at_s,
        last_token_at_s=at_s,
    )


def _with_info(chats: Chats, info: ChatInfo) -> Chats:
    """A conversation as it is now: first in the list if it is new there."""
    summary = ChatSummary.model_validate(info.model_dump())
    if any(known.id == info.id for known in chats.listed):
        listed = tuple(
            summary.model_copy(update={"found": known.found}) if known.id == info.id else known
            for known in chats.listed
        )
    else:
        listed = (summary, *chats.listed) if not chats.query else chats.listed
    chat = chats.open
    if chat.id == info.id or (chat.id is None and chat.answering is Answering.ASKED):
        chat = replace(chat, id=info.id, title=info.title, settings=_settings(info))
    return replace(chats, listed=listed, open=chat)


def _marked(chats: Chats, chat: int, *, answering: bool) -> Chats:
    """Say whether a conversation is being answered; one that is becomes the newest."""
    marked = tuple(
        known.model_copy(update={"answering": answering}) if known.id == chat else known
        for known in chats.listed
    )
    if answering and not chats.query:
        marked = tuple(sorted(marked, key=lambda known: known.id != chat))
    return replace(chats, listed=marked)


def _settings(info: ChatInfo) -> ChatSettings:
    return ChatSettings(title=info.title, system_prompt=info.system_prompt, sampling=info.sampling)
