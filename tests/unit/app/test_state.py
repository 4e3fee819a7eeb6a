from __future__ import annotations

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
    StatusArrived,
)
from app.state import Owner, Process
from tests.support.app_states import after, status


def test_status_opens_the_link_and_is_kept() -> None:
    state = after(EngineStarting(), StatusArrived(status(peers=3)))
    assert state.linked
    assert state.process is Process.RUNNING
    assert state.owner is Owner.OURS
    assert state.status is not None
    assert state.status.peers == 3


def test_lost_connection_keeps_the_last_status_and_says_why() -> None:
    state = after(EngineFound(), StatusArrived(status()), ConnectionLost("It sleeps."))
    assert not state.linked
    assert state.status is not None
    assert state.link_note == "It sleeps."


def test_status_of_a_crashed_engine_is_forgotten() -> None:
    state = after(EngineStarting(), StatusArrived(status()), EngineCrashed("No memory."))
    assert state.status is None
    assert state.process is Process.RESTARTING
    assert after(EngineStarting(), start=state).process_note == ""


def test_stopped_engine_is_nobodys() -> None:
    state = after(EngineStarting(), EngineStopped("It failed."))
    assert state.owner is Owner.UNKNOWN
    assert state.process_note == "It failed."


def test_command_is_pending_until_the_engine_answers() -> None:
    sent = after(StatusArrived(status()), CommandSent(Command.PAUSE))
    assert sent.command is Command.PAUSE
    assert after(CommandDone(), start=sent).command is None
    failed = after(CommandFailed("No."), start=sent)
    assert failed.command is None
    assert failed.command_error == "No."
    assert after(CommandSent(Command.PAUSE), start=failed).command_error == ""
