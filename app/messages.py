"""What can happen to the app, as frozen values: the input of `app.state.apply`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.batch_messages import BatchMessage
from app.chat_messages import ChatMessage
from app.past_messages import PastMessage
from app.setup_messages import SetupMessage
from engine.localapi.schema import EngineStatus


class Command(StrEnum):
    """An order to the engine that has not been answered yet."""

    PAUSE = "pause"
    FINISH = "finish"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class EngineStarting:
    """We have started an engine."""


@dataclass(frozen=True, slots=True)
class EngineFound:
    """An engine was running already; we use it."""


@dataclass(frozen=True, slots=True)
class EngineCrashed:
    """Our engine ended unexpectedly and will be started again."""

    reason: str


@dataclass(frozen=True, slots=True)
class EngineStopped:
    """The engine is gone, and nobody starts it again unless asked."""

    reason: str


@dataclass(frozen=True, slots=True)
class StatusArrived:
    """The engine told its state."""

    status: EngineStatus


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The event stream closed, or could not be opened."""

    reason: str


@dataclass(frozen=True, slots=True)
class CommandSent:
    """An order is on its way."""

    command: Command


@dataclass(frozen=True, slots=True)
class CommandDone:
    """The engine has obeyed."""


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """The engine has not obeyed."""

    message: str


@dataclass(frozen=True, slots=True)
class QuitAsked:
    """The person wants us gone."""


Message = (
    EngineStarting
    | EngineFound
    | EngineCrashed
    | EngineStopped
    | StatusArrived
    | ConnectionLost
    | CommandSent
    | CommandDone
    | CommandFailed
    | QuitAsked
    | BatchMessage
    | ChatMessage
    | PastMessage
    | SetupMessage
)
