from __future__ import annotations

from app.messages import (
    ChatAsked,
    ChatCleared,
    ChatEnded,
    ChatFailed,
    ChatRetried,
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
    StatusArrived,
)
from app.state import Answering, Owner, Process, Role, history
from tests.support.app_states import after, answered, status


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


def test_answer_grows_with_each_token_and_ends() -> None:
    chat = after(*answered("Why?", "Because it is so")).chat
    assert [turn.text for turn in chat.turns] == ["Why?", "Because it is so "]
    assert chat.answering is Answering.NOT
    assert chat.turns[-1].ending is Ending.COMPLETE


def test_rate_counts_the_time_between_first_and_last_token() -> None:
    chat = after(ChatAsked("?"), *(ChatToken("x", 5.0 + at / 4) for at in range(9))).chat
    assert chat.tokens == 9
    assert chat.tokens_per_s == 4.0


def test_engines_own_token_count_wins_at_the_end() -> None:
    messages = (ChatAsked("?"), ChatToken("two tokens", 0.0), ChatEnded(Ending.COMPLETE, tokens=2))
    assert after(*messages).chat.tokens == 2


def test_second_question_waits_for_the_first_answer() -> None:
    state = after(ChatAsked("one"))
    assert after(ChatAsked("two"), start=state) == state


def test_blank_question_is_no_question() -> None:
    assert after(ChatAsked("  \n ")).chat.turns == ()


def test_failed_answer_keeps_its_text_and_can_be_asked_again() -> None:
    failed = after(ChatAsked("Why?"), ChatToken("Bec", 0.0), ChatFailed("The line broke."))
    assert failed.chat.failure is not None
    assert failed.chat.failure.message == "The line broke."
    assert failed.chat.turns[-1].text == "Bec"
    again = after(ChatRetried(), start=failed)
    assert again.chat.failure is None
    assert again.chat.answering is Answering.WAITING
    assert [turn.text for turn in again.chat.turns] == ["Why?", ""]
    assert again.chat.turns[-1].key != failed.chat.turns[-1].key


def test_tokens_after_stop_are_dropped() -> None:
    stopped = after(ChatAsked("?"), ChatToken("a", 0.0), ChatEnded(Ending.STOPPED))
    assert after(ChatToken("b", 1.0), ChatFailed("late"), start=stopped) == stopped


def test_cleared_conversation_never_uses_a_key_again() -> None:
    first = after(*answered("Why?", "So")).chat
    second = after(*answered("Why?", "So"), ChatCleared(), ChatAsked("Else?")).chat
    assert not {turn.key for turn in first.turns} & {turn.key for turn in second.turns}


def test_history_leaves_out_answers_that_never_came() -> None:
    chat = after(ChatAsked("one"), ChatFailed("no"), ChatAsked("two")).chat
    assert [(turn.role, turn.text) for turn in history(chat)] == [
        (Role.USER, "one"),
        (Role.USER, "two"),
    ]
