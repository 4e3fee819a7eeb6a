from __future__ import annotations

import pytest

from engine.chats.messages import Said
from engine.chats.prompting import content, shown
from engine.core.errors import ContextTooLong
from engine.localapi.chats import Attachment, Speaker


def said(*texts: str) -> tuple[Said, ...]:
    speakers = (Speaker.USER, Speaker.ASSISTANT)
    return tuple(Said(at, speakers[at % 2], text) for at, text in enumerate(texts))


def words(text: str) -> int:
    return len(text.split())


def test_short_conversation_is_shown_whole_after_the_system_prompt():
    choice = shown(said("a", "b", "c"), "Be brief.", words, 100)
    assert [turn["content"] for turn in choice.messages] == ["Be brief.", "a", "b", "c"]
    assert choice.left_out == 0


def test_oldest_messages_are_left_out_and_a_question_comes_first():
    long = "word " * 10
    choice = shown(said(long, long, long, long, "now?"), "Be brief.", words, 60)
    assert [turn["role"] for turn in choice.messages] == ["system", "user", "assistant", "user"]
    assert choice.left_out == 2


def test_question_that_does_not_fit_is_refused():
    with pytest.raises(ContextTooLong, match="shorten it"):
        shown(said("word " * 90), "", words, 60)


def test_answers_that_never_came_are_not_shown():
    choice = shown(said("a", "", "c"), "", words, 100)
    assert [turn["content"] for turn in choice.messages] == ["a", "c"]


def test_file_stands_before_its_message_in_a_fence_that_holds_it():
    turn = Said(1, Speaker.USER, "Explain.", (Attachment(name="a.md", text="```\nx\n```\n"),))
    assert content(turn) == "File a.md:\n````\n```\nx\n```\n````\n\nExplain."
