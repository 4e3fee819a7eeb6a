"""Conversations under any order of operations, and searches for any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chats import conversations, messages
from engine.localapi.chats import Speaker
from tests.support.chat_tables import begin, exchange, shown, tables

steps = st.lists(
    st.tuples(st.sampled_from(["say", "edit", "again", "show"]), st.integers(0, 30)), max_size=25
)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_shown_branch_is_always_a_path_to_a_leaf_and_nothing_is_lost(steps):
    with tables() as db:
        chat = begin(db)
        known: list[messages.Message] = []
        for kind, number in steps:
            answers = [m for m in known if m.speaker is Speaker.ASSISTANT]
            questions = [m for m in known if m.speaker is Speaker.USER]
            if kind == "say" or not known:
                parent = answers[number % len(answers)].id if answers else None
                known += exchange(db, chat, "q", "a", parent)
            elif kind == "edit":
                old = questions[number % len(questions)]
                known += exchange(db, chat, "q", "a", old.parent)
            elif kind == "again":
                question = questions[number % len(questions)]
                begun = messages.begin_answer(db, chat, question.id, 1.0)
                known.append(begun)
                messages.end_all_interrupted(db)
            else:
                wanted = known[number % len(known)]
                messages.show(db, chat, wanted.id)
                page = messages.page(db, chat, before=None, limit=messages.NO_LIMIT)
                assert wanted.id in [m.id for m in page.messages]
            page = messages.page(db, chat, before=None, limit=messages.NO_LIMIT)
            assert page.messages[0].parent is None
            for above, below in zip(page.messages, page.messages[1:], strict=False):
                assert below.parent == above.id
            leaf = page.messages[-1].id
            assert not any(m.parent == leaf for m in messages.whole(db, chat))
            for one in page.messages:
                assert one.id in one.siblings
        assert len(messages.whole(db, chat)) == len(known)


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=40), st.text(min_size=1, max_size=40))
def test_any_text_can_be_searched_for(query, said):
    with tables() as db:
        chat = begin(db, title="x")
        exchange(db, chat, "?" + said, "a")
        conversations.listed(db, query, after=None, limit=5, deleted=False)


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=3, max_size=30), st.data()
)
def test_every_piece_of_a_message_finds_it(said, data):
    start = data.draw(st.integers(0, len(said) - 1))
    end = data.draw(st.integers(start + 1, len(said)))
    with tables() as db:
        chat = begin(db, title="")
        exchange(db, chat, said, "0")
        found = conversations.listed(db, said[start:end], after=None, limit=5, deleted=False)
        assert [summary.id for summary in found.chats] == [chat]
        assert shown(db, chat) == [said, "0"]
