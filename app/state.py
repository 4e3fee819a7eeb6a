"""What the app knows, and how each message changes it.

Pure: no Qt, no clock, no I/O. Times in messages are `Clock.monotonic_s` readings of whoever sent
them, so that the same messages always lead to the same state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from app.messages import (
    ChatAsked,
    ChatCleared,
    ChatEnded,
    ChatFailed,
    ChatMessage,
    ChatRetried,
    ChatStarted,
    ChatToken,
    Command,
    CommandDone,
    CommandFailed,
    CommandSent,
    ConnectionLost,
    Ending,
    EngineCrashed,
    EngineFound,
    EngineStarting,
    EngineStopped,
    Message,
    QuitAsked,
    StatusArrived,
)
from engine.localapi.schema import EngineStatus


class Owner(StrEnum):
    """Whose engine we talk to; decides what Quit does."""

    UNKNOWN = "unknown"
    OURS = "ours"
    """We started it and hold its lease: it ends with us."""
    FOUND = "found"
    """It was running before us and stays when we go."""


class Process(StrEnum):
    """The engine's process, as far as we can tell."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPED = "stopped"
    """It ended and will not be started again until the person says so."""


class Role(StrEnum):
    """Who speaks, in the words of the chat API."""

    USER = "user"
    ASSISTANT = "assistant"


class Answering(StrEnum):
    """How far the present answer is."""

    NOT = "not"
    WAITING = "waiting"
    """Asked; no token yet."""
    STREAMING = "streaming"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation."""

    key: int
    """Never used twice, so that a window can tell a repeated answer from its predecessor."""
    role: Role
    text: str = ""
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class ChatFailure:
    """Why there is no answer, in one sentence that says what to do."""

    message: str


@dataclass(frozen=True, slots=True)
class Chat:
    """The one conversation that is kept, in memory only."""

    turns: tuple[Turn, ...] = ()
    answering: Answering = Answering.NOT
    failure: ChatFailure | None = None
    tokens: int = 0
    """Tokens of the newest answer."""
    first_token_at_s: float = 0.0
    last_token_at_s: float = 0.0
    next_key: int = 0

    @property
    def tokens_per_s(self) -> float:
        """Decode rate of the newest answer; 0 before its second token."""
        elapsed_s = self.last_token_at_s - self.first_token_at_s
        return (self.tokens - 1) / elapsed_s if self.tokens > 1 and elapsed_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class AppState:
    """Everything that the tray and the windows draw."""

    owner: Owner = Owner.UNKNOWN
    process: Process = Process.STARTING
    process_note: str = ""
    """Why the process is not running, as a sentence; empty while it is."""
    linked: bool = False
    """Whether the engine's event stream is open."""
    link_note: str = ""
    """Why it is not, as a sentence."""
    status: EngineStatus | None = None
    """The engine's last word; old while not `linked`."""
    command: Command | None = None
    command_error: str = ""
    quitting: bool = False
    chat: Chat = field(default_factory=Chat)


def apply(state: AppState, message: Message) -> AppState:
    """The state after `message`. Messages that no longer make sense change nothing."""
    match message:
        case EngineStarting():
            return replace(_unlinked(state), owner=Owner.OURS, process=Process.STARTING)
        case EngineFound():
            return replace(_unlinked(state), owner=Owner.FOUND, process=Process.RUNNING)
        case EngineCrashed(reason):
            return replace(_unlinked(state), process=Process.RESTARTING, process_note=reason)
        case EngineStopped(reason):
            return replace(
                _unlinked(state), owner=Owner.UNKNOWN, process=Process.STOPPED, process_note=reason
            )
        case StatusArrived(status):
            return replace(
                state,
                linked=True,
                link_note="",
                status=status,
                process=Process.RUNNING,
                process_note="",
            )
        case ConnectionLost(reason):
            return replace(state, linked=False, link_note=reason, command=None)
        case CommandSent(command):
            return replace(state, command=command, command_error="")
        case CommandDone():
            return replace(state, command=None, command_error="")
        case CommandFailed(text):
            return replace(state, command=None, command_error=text)
        case QuitAsked():
            return replace(state, quitting=True)
        case (
            ChatAsked()
            | ChatRetried()
            | ChatStarted()
            | ChatToken()
            | ChatEnded()
            | ChatFailed()
            | ChatCleared()
        ):
            return replace(state, chat=_apply_to_chat(state.chat, message))
        case _:
            assert_never(message)


def _unlinked(state: AppState) -> AppState:
    """Forget what the former engine said; nothing of it holds for the next."""
    return replace(
        state,
        linked=False,
        link_note="",
        status=None,
        command=None,
        command_error="",
        process_note="",
    )


def _apply_to_chat(chat: Chat, message: ChatMessage) -> Chat:
    answering = chat.answering is not Answering.NOT
    match message:
        case ChatAsked(text):
            if answering or not text.strip():
                return chat
            question = Turn(chat.next_key, Role.USER, text.strip())
            return _waiting(
                replace(chat, turns=(*chat.turns, question), next_key=chat.next_key + 1)
            )
        case ChatRetried():
            if answering or not chat.turns:
                return chat
            turns = chat.turns
            return _waiting(
                replace(chat, turns=turns[:-1] if turns[-1].role is Role.ASSISTANT else turns)
            )
        case ChatStarted():
            return chat
        case ChatToken(text, at_s):
            if not answering:
                return chat
            first = chat.answering is Answering.WAITING
            return replace(
                _with_answer(chat, text=chat.turns[-1].text + text),
                answering=Answering.STREAMING,
                tokens=chat.tokens + 1,
                first_token_at_s=at_s if first else chat.first_token_at_s,
                last_token_at_s=at_s,
            )
        case ChatEnded(ending, tokens):
            if not answering:
                return chat
            return replace(
                _with_answer(chat, ending=ending),
                answering=Answering.NOT,
                tokens=chat.tokens if tokens is None else tokens,
            )
        case ChatFailed(text):
            if not answering:
                return chat
            return replace(
                _with_answer(chat, ending=Ending.FAILED),
                answering=Answering.NOT,
                failure=ChatFailure(text),
            )
        case ChatCleared():
            return Chat(next_key=chat.next_key)
        case _:
            assert_never(message)


def _waiting(chat: Chat) -> Chat:
    """Open an empty answer after the last turn."""
    return replace(
        chat,
        turns=(*chat.turns, Turn(chat.next_key, Role.ASSISTANT)),
        next_key=chat.next_key + 1,
        answering=Answering.WAITING,
        failure=None,
        tokens=0,
        first_token_at_s=0.0,
        last_token_at_s=0.0,
    )


def _with_answer(chat: Chat, *, text: str | None = None, ending: Ending | None = None) -> Chat:
    newest = chat.turns[-1]
    changed = replace(newest, text=newest.text if text is None else text, ending=ending)
    return replace(chat, turns=(*chat.turns[:-1], changed))


def history(chat: Chat) -> tuple[Turn, ...]:
    """The turns that a request for the newest answer must carry: all that say something."""
    return tuple(turn for turn in chat.turns if turn.text)
