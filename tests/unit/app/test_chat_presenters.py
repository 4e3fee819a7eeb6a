from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from app.chat_messages import (
    AnswerAsked,
    AnswerEnded,
    AnswerGrew,
    AnswerLost,
    ChatDeleted,
    ChatsListed,
    ChatsNotListed,
    ChatsSought,
    DraftCounted,
)
from app.chat_presenters import (
    ChatView,
    SidebarView,
    answer_facts,
    as_text,
    chat_view,
    sidebar_view,
)
from app.messages import EngineStarting, Message, StatusArrived
from app.words import model_name
from engine.localapi.chats import ChatList, DraftingInfo, Privacy
from engine.localapi.said import Said
from tests.support.app_states import after, answer, answered, begun, grew, info, question, status

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=timezone(timedelta(hours=1)))


def chat(*messages: Message) -> ChatView:
    return chat_view(after(*messages), NOW, str)


def sidebar(*messages: Message) -> SidebarView:
    return sidebar_view(after(*messages).chats, NOW, str)


def told(**fields: Any) -> tuple[Message, ...]:
    return EngineStarting(), StatusArrived(status(**fields))


def test_chat_is_open_when_the_engine_has_a_route() -> None:
    assert chat(*told()).can_send
    assert chat(*told()).notice == ""
    assert not chat(*told(can_chat=False)).can_send


@pytest.mark.parametrize(
    ("messages", "notice", "progress"),
    [
        ((EngineStarting(),), "Starting the engine…", -1.0),
        (
            told(
                state="starting",
                can_chat=False,
                progress={"what": "Downloading X", "done": 1, "total": 4, "unit": "bytes"},
            ),
            "Downloading X: 25 % of 4 B",
            0.25,
        ),
        (
            told(state="paused", can_chat=False, reason="You paused it."),
            "Paused until you resume. You paused it.",
            None,
        ),
        (
            told(state="offline", can_chat=False, reason="No bootstrap answers."),
            "Offline: no connection to the swarm. No bootstrap answers.",
            None,
        ),
    ],
)
def test_closed_chat_says_why(
    messages: tuple[Message, ...], notice: str, progress: float | None
) -> None:
    view = chat(*messages)
    assert not view.can_send
    assert (view.notice, view.progress) == (notice, progress)


def test_chat_without_a_route_says_what_it_waits_for() -> None:
    assert chat(*told(can_chat=False)).notice == "Almost ready…"
    assert "Nobody holds some" in chat(*told(can_chat=False, swarm="reef")).notice


def test_paused_chat_offers_to_resume() -> None:
    assert chat(*told(state="paused", can_chat=False)).resume.visible


def test_paused_node_can_chat_when_others_hold_the_model() -> None:
    assert chat(*told(state="paused", can_chat=True)).can_send


PLAN = [{"peer": f"Qm{i}", "start": i, "end": i + 1, "is_self": i == 1} for i in range(3)]


def test_live_line_tells_speed_count_and_place():
    tokens = [grew("x", at + 1, at / 10) for at in range(84)]
    line = chat(*told(), *begun(1), *tokens).live_line
    assert line == "10.0 tokens/s · 84 tokens · on this computer"
    waiting = chat(*told(), *begun(1)).live_line
    assert waiting == "Waiting for the first token… · on this computer"
    assert chat(*told()).live_line == "on this computer"


def test_live_line_tells_what_drafts_and_why_nothing_does():
    parts = (Said(text="drafts take longer than they save"),)
    off = DraftingInfo(draft="off", reason=parts[0].text, said=parts)
    for drafting, said in (
        (off, "no draft: drafts take longer than they save"),
        (off.model_copy(update={"draft": "model", "tokens_per_round": 2.13}),
         "2.1 tokens a round with a draft model"),
        (off.model_copy(update={"draft": "ngram", "tokens_per_round": 3.0}),
         "3.0 tokens a round by looking up"),
    ):  # fmt: skip
        grown = AnswerGrew(1, "So", 4, 1.0, drafting)
        assert chat(*told(), *begun(1), grown).live_line == f"{said} · 4 tokens · on this computer"


def test_live_line_names_swarm_stages_and_relays():
    assert chat(*told(swarm="reef", plan=PLAN)).live_line == "reef, 3 stages"
    link = {"peer": "Qm2", "path": "relayed", "rtt_ms": 90.0, "sent_bytes": 0}
    elsewhere = link | {"peer": "Qm9"}
    view = chat(*told(swarm="reef", plan=PLAN, links=[link, elsewhere]))
    assert view.live_line == "reef, 3 stages, 1 relayed"
    assert view.path == "Blocks 0–0 → 1–1 (this computer) → 2–2"


@pytest.mark.parametrize(
    ("fields", "privacy", "words"),
    [
        ({}, Privacy.LOCAL, "do not leave this computer"),
        ({"swarm": "reef", "private": True}, Privacy.PRIVATE, "Members of reef"),
        ({"swarm": "reef"}, Privacy.PUBLIC, "Strangers"),
    ],
)
def test_badge_says_who_can_read(fields: dict[str, Any], privacy: Privacy, words: str) -> None:
    badge = chat(*told(**fields)).badge
    assert badge is not None
    assert badge.privacy is privacy
    assert words in badge.explanation


def test_badge_is_missing_while_nobody_knows():
    assert chat(EngineStarting()).badge is None


def test_answer_can_be_stopped_while_it_runs_and_only_then():
    running = chat(*told(), *begun(1))
    assert running.can_stop
    assert not running.can_send
    assert not running.can_change
    over = chat(*told(), *answered("Why?", "So"))
    assert not over.can_stop
    assert over.can_send
    assert over.can_change


@pytest.mark.parametrize(
    ("ending", "can_continue", "can_retry"),
    [
        ("complete", False, False),
        ("length", True, False),
        ("stopped", True, False),
        ("failed", True, True),
        ("interrupted", True, True),
    ],
)
def test_answer_that_ended_early_can_go_on(
    ending: str, can_continue: bool, can_retry: bool
) -> None:
    over = answer(2, "Bec", 1, ending=ending)
    view = chat(*told(), *begun(1), AnswerEnded(1, over))
    assert (view.can_continue, view.can_retry) == (can_continue, can_retry)


def test_answer_without_a_word_is_asked_for_again_instead_of_continued():
    over = answer(2, "", 1, ending="failed", failure="No route.")
    view = chat(*told(), *begun(1), AnswerEnded(1, over))
    assert (view.can_continue, view.can_retry, view.failure) == (False, True, "No route.")


def test_refused_question_says_why_and_is_not_retried():
    view = chat(*told(), AnswerAsked(), AnswerLost("Not ready."))
    assert (view.failure, view.can_retry) == ("Not ready.", False)


def test_context_counts_conversation_and_draft():
    known = answer(2, "So", 1, context_tokens=1000)
    messages = (*told(), *begun(1), AnswerEnded(1, known))
    view = chat(*messages, DraftCounted(234, 8192))
    assert view.context_line == "1,234 of 8,192 tokens"
    assert not view.context_is_full
    assert chat(*messages, DraftCounted(9000, 8192)).context_is_full
    assert chat(*told(), DraftCounted(0, 8192)).context_line == ""


def test_facts_of_an_answer_name_model_count_and_speed():
    whole = answer(2, "So", 1, model="a/B@12", tokens=21, seconds=2.0, left_out=4)
    assert answer_facts(whole, str) == (
        "B · 21 tokens · 10.0 tokens/s · without the first 4 messages"
    )
    assert answer_facts(answer(2, "", 1), str) == ""


def test_empty_conversation_says_who_reads_it():
    assert "do not leave it" in chat(*told()).welcome
    assert "do not write secrets" in chat(*told(swarm="reef")).welcome


def test_list_says_when_conversations_were_changed():
    hour = 3600.0
    ages = {1: 0.0, 2: 20 * hour, 3: 3 * 24 * hour, 4: 30 * 24 * hour, 5: 500 * 24 * hour}
    chats = ChatList(
        chats=tuple(
            info(number, f"c{number}", updated_unix_s=NOW.timestamp() - age)
            for number, age in ages.items()
        ),
        more=False,
    )
    rows = sidebar(ChatsListed("", None, chats)).rows
    assert [row.detail for row in rows] == ["18:05", "yesterday", "Sunday", "2 Feb", "20 Oct 2024"]


def test_empty_list_says_why():
    nothing = ChatList(chats=(), more=False)
    assert sidebar().empty == ""
    assert "will be listed" in sidebar(ChatsListed("", None, nothing)).empty
    sought = sidebar(ChatsSought("eel"), ChatsListed("eel", None, nothing))
    assert "Nothing is found" in sought.empty
    assert sidebar(ChatsNotListed("The disk is broken.")).empty == "The disk is broken."


def test_deleted_conversation_is_offered_back_by_its_title():
    assert sidebar(ChatDeleted(info(1, "Fish"))).undo == "“Fish” is in the trash."


def test_conversation_as_text_says_who_speaks():
    turns = (question(1, "Why?"), answer(2, "So.\n", 1))
    assert as_text(turns, str) == "You:\nWhy?\n\nAnswer:\nSo."


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct"),
        ("/models/tiny/", "tiny"),
        ("C:\\models\\tiny", "tiny"),
        ("starter@0a1b2c", "starter"),
    ],
)
def test_model_is_named_as_people_say_it(model: str, name: str) -> None:
    assert model_name(model) == name
