"""What the app knows, and how each message changes it.

Pure: no Qt, no clock, no I/O. Times in messages are `Clock.monotonic_s` readings of whoever sent
them, so that the same messages always lead to the same state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from app.batch_messages import (
    FailedWanted,
    JobAsked,
    JobChosen,
    JobCreated,
    JobDeleted,
    JobPreviewArrived,
    JobPreviewFailed,
    JobRefused,
    JobsArrived,
    JobSettled,
    JobsFollowed,
    JobsLost,
    JobUndoExpired,
    JobUndone,
    NewsRead,
    PreviewAsked,
    ResultsSaved,
    RowsArrived,
    RowsFailed,
)
from app.batch_state import Batches, apply_to_batches
from app.chat_state import Chats, apply_to_chats
from app.messages import (
    Command,
    CommandDone,
    CommandFailed,
    CommandSent,
    ConnectionLost,
    EngineCrashed,
    EngineFound,
    EngineStarting,
    EngineStopped,
    Message,
    QuitAsked,
    StatusArrived,
)
from app.past_messages import (
    ArchiveTold,
    LogArrived,
    LogFailed,
    PreviewArrived,
    PreviewFailed,
    RangeChosen,
    StatisticsArrived,
    StatisticsFailed,
)
from app.past_state import Past, apply_to_past
from app.setup_messages import (
    ChangeAsked,
    ChangeDone,
    ChangeFailed,
    InviteGiven,
    KeptModelsArrived,
    MachineMeasured,
    MeasuringBegan,
    MeasuringFailed,
    PlanArrived,
    PlanFailed,
    SettingsArrived,
    SwarmArrived,
)
from app.setup_state import Setup, apply_to_setup
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
    chats: Chats = field(default_factory=Chats)
    batches: Batches = field(default_factory=Batches)
    past: Past = field(default_factory=Past)
    setup: Setup = field(default_factory=Setup)


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
            RangeChosen()
            | StatisticsArrived()
            | StatisticsFailed()
            | LogArrived()
            | LogFailed()
            | PreviewArrived()
            | PreviewFailed()
            | ArchiveTold()
        ):
            return replace(state, past=apply_to_past(state.past, message))
        case (
            InviteGiven()
            | MeasuringBegan()
            | MachineMeasured()
            | MeasuringFailed()
            | PlanArrived()
            | PlanFailed()
            | ChangeAsked()
            | ChangeDone()
            | ChangeFailed()
            | SwarmArrived()
            | SettingsArrived()
            | KeptModelsArrived()
        ):
            return replace(state, setup=apply_to_setup(state.setup, message))
        case (
            FailedWanted()
            | JobAsked()
            | JobChosen()
            | JobCreated()
            | JobDeleted()
            | JobPreviewArrived()
            | JobPreviewFailed()
            | JobRefused()
            | JobsArrived()
            | JobSettled()
            | JobUndoExpired()
            | JobUndone()
            | JobsFollowed()
            | JobsLost()
            | NewsRead()
            | PreviewAsked()
            | ResultsSaved()
            | RowsArrived()
            | RowsFailed()
        ):
            return replace(state, batches=apply_to_batches(state.batches, message))
        case _:
            return replace(state, chats=apply_to_chats(state.chats, message))


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
