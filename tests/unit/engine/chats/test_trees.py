from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from engine.chats import conversations, export, messages
from engine.chats.messages import Growth
from engine.core.errors import ChatNotFound, RequestError
from engine.localapi.chats import Attachment, ChatChange, Ending, NewMessage, Sampling, Speaker
from tests.support.chat_tables import begin, exchange, shown, tables


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with tables() as connection:
        yield connection


def test_conversation_shows_what_was_said_last(db):
    chat = begin(db)
    _, answer = exchange(db, chat, "Why?", "Because.")
    exchange(db, chat, "And then?", "Nothing.", answer.id)
    assert shown(db, chat) == ["Why?", "Because.", "And then?", "Nothing."]


def test_edited_question_opens_a_branch_and_the_old_one_can_be_shown_again(db):
    chat = begin(db)
    _, first = exchange(db, chat, "one", "1")
    old, _ = exchange(db, chat, "two", "2", first.id)
    new, _ = exchange(db, chat, "TWO", "II", first.id)
    assert shown(db, chat) == ["one", "1", "TWO", "II"]
    assert messages.message(db, chat, new.id).siblings == (old.id, new.id)
    messages.show(db, chat, old.id)
    assert shown(db, chat) == ["one", "1", "two", "2"]


def test_first_question_can_be_edited_too(db):
    chat = begin(db)
    old, _ = exchange(db, chat, "one", "1")
    new, _ = exchange(db, chat, "uno", "I")
    assert messages.message(db, chat, new.id).siblings == (old.id, new.id)
    assert shown(db, chat) == ["uno", "I"]


def test_answer_given_again_stands_beside_the_first(db):
    chat = begin(db)
    question, first = exchange(db, chat, "Why?", "Because.")
    second = messages.begin_answer(db, chat, question.id, 2.0)
    assert second.siblings == (first.id, second.id)
    assert second.ending is None
    assert shown(db, chat) == ["Why?", ""]


def test_pages_go_back_to_the_beginning_without_gap_or_repetition(db):
    chat = begin(db)
    parent = None
    for number in range(7):
        _, answer = exchange(db, chat, f"q{number}", f"a{number}", parent)
        parent = answer.id
    collected: list[str] = []
    before = None
    while True:
        page = messages.page(db, chat, before=before, limit=3)
        collected = [message.text for message in page.messages] + collected
        if not page.more:
            break
        before = page.messages[0].id
    assert collected == [text for number in range(7) for text in (f"q{number}", f"a{number}")]


def test_only_the_last_answer_can_be_continued(db):
    chat = begin(db)
    question, first = exchange(db, chat, "Why?", "Because")
    _, last = exchange(db, chat, "More", "of it", first.id)
    assert messages.reopen_answer(db, chat, last.id).ending is None
    with pytest.raises(RequestError, match="last answer"):
        messages.reopen_answer(db, chat, first.id)
    with pytest.raises(RequestError, match="Only an answer"):
        messages.reopen_answer(db, chat, question.id)


def test_files_travel_with_their_message_and_with_its_edited_successor(db):
    chat = begin(db)
    file = Attachment(name="notes.txt", text="Eels.")
    said = messages.say(db, chat, NewMessage(parent=None, text="Read", attachments=(file,)), 1.0)
    assert [(info.name, info.chars) for info in said.attachments] == [("notes.txt", 5)]
    edited = NewMessage(parent=None, text="Read it", attachments_of=said.id)
    again = messages.say(db, chat, edited, 2.0)
    assert messages.branch(db, again.id)[0].attachments == (file,)


def test_message_must_say_something_and_follow_an_answer_of_its_conversation(db):
    chat, other = begin(db), begin(db)
    question, answer = exchange(db, chat, "Why?", "Because.")
    for wrong, text in (
        (NewMessage(parent=answer.id, text=" \n"), "empty"),
        (NewMessage(parent=question.id, text="x"), "follow an answer"),
        (NewMessage(parent=999, text="x"), "no message 999"),
    ):
        with pytest.raises(RequestError, match=text):
            messages.say(db, chat, wrong, 1.0)
    with pytest.raises(RequestError, match="no message"):
        messages.say(db, other, NewMessage(parent=answer.id, text="x"), 1.0)


def test_answer_that_was_being_written_when_the_engine_ended_is_kept_and_found(db):
    chat = begin(db)
    said = messages.say(db, chat, NewMessage(parent=None, text="Why?"), 1.0)
    answer = messages.begin_answer(db, chat, said.id, 1.0)
    messages.keep(db, answer.id, "Because herrings", Growth(tokens=2))
    messages.end_all_interrupted(db)
    assert messages.message(db, chat, answer.id).ending is Ending.INTERRUPTED
    found = conversations.listed(db, "herrings", after=None, limit=9, deleted=False)
    assert [summary.id for summary in found.chats] == [chat]


def test_title_comes_from_the_first_message_unless_it_has_one(db):
    chat, named = begin(db), begin(db, title="Mine")
    exchange(db, chat, "\n  Why do fish\nswim?", "x")
    exchange(db, named, "Why?", "x")
    assert conversations.info(db, chat).title == "Why do fish"
    assert conversations.info(db, named).title == "Mine"
    long = conversations.title_from("word " * 40)
    assert len(long) <= 61
    assert long.endswith("word…")


def test_change_sets_what_is_named_and_leaves_the_rest(db):
    chat = begin(db, title="Old")
    conversations.change(db, chat, ChatChange(system_prompt="Be brief."))
    changed = conversations.change(db, chat, ChatChange(sampling=Sampling(temperature=0.3)))
    assert (changed.title, changed.system_prompt, changed.sampling.temperature) == (
        "Old", "Be brief.", 0.3,
    )  # fmt: skip


def test_deleted_conversation_can_be_brought_back_for_a_month(db):
    chat = begin(db)
    exchange(db, chat, "Why?", "Because.")
    conversations.delete(db, chat, 100.0)
    assert conversations.listed(db, "", after=None, limit=9, deleted=False).chats == ()
    assert len(conversations.listed(db, "", after=None, limit=9, deleted=True).chats) == 1
    conversations.restore(db, chat)
    assert shown(db, chat) == ["Why?", "Because."]
    conversations.delete(db, chat, 100.0)
    conversations.empty_trash(db, 99.0 + conversations.TRASH_S)
    assert conversations.info(db, chat).deleted
    conversations.empty_trash(db, 101.0 + conversations.TRASH_S)
    with pytest.raises(ChatNotFound):
        conversations.info(db, chat)


def test_list_is_paged_and_the_last_changed_stands_first(db):
    chats = [begin(db, title=f"c{number}", at_s=float(number)) for number in range(5)]
    exchange(db, chats[1], "again", "x", at_s=50.0)
    order: list[int] = []
    after = None
    while True:
        page = conversations.listed(db, "", after=after, limit=2, deleted=False)
        order += [summary.id for summary in page.chats]
        if not page.more:
            break
        after = order[-1]
    assert order == [chats[1], chats[4], chats[3], chats[2], chats[0]]


@pytest.mark.parametrize(
    "query", ["Köln", "öln", "koi KÖLNER", "魚は群れ", "ab", "title!", '"', "b%"]
)
def test_search_finds_pieces_of_words_in_titles_and_messages(db, query):
    chat, other = begin(db, title="The title!"), begin(db, title="Other title")
    exchange(db, chat, "Kölner koi", 'A herring, "ab" a b%, 魚は群れをなす')
    exchange(db, other, "Nothing of it", "No koi, no herring.")
    found = conversations.listed(db, query, after=None, limit=9, deleted=False).chats
    assert [summary.id for summary in found] == [chat]


def test_words_of_a_search_must_stand_in_one_message(db):
    chat = begin(db)
    exchange(db, chat, "Kölner koi", "A herring")
    assert conversations.listed(db, "koi herring", after=None, limit=9, deleted=False).chats == ()


def test_search_shows_where_it_has_found_the_words(db):
    chat = begin(db)
    exchange(db, chat, "Tell me", "word " * 50 + "the herring swims " + "word " * 50)
    found = conversations.listed(db, "herring", after=None, limit=9, deleted=False).chats
    assert "the herring swims" in found[0].found
    assert found[0].found.startswith("…")
    assert found[0].found.endswith("…")


def test_export_holds_the_branch_as_text_and_everything_as_json(db):
    import json

    chat = begin(db, title="Fish")
    conversations.change(db, chat, ChatChange(system_prompt="Be brief."))
    exchange(db, chat, "one", "1")
    exchange(db, chat, "uno", "I")
    info = conversations.info(db, chat)
    page = messages.page(db, chat, before=None, limit=messages.NO_LIMIT)
    text = export.as_markdown(info, page.messages)
    assert text == "# Fish\n\n## System\n\nBe brief.\n\n## You\n\nuno\n\n## Answer\n\nI\n"
    document = json.loads(export.as_json(info, messages.whole(db, chat)))
    assert [message["text"] for message in document["messages"]] == ["one", "1", "uno", "I"]
    assert document["messages"][3]["parent"] == document["messages"][2]["id"]


def test_ten_thousand_messages_can_be_paged_branched_and_deleted(db):
    chat = begin(db)
    db.execute("BEGIN")
    parent = None
    for number in range(10_000):
        speaker = Speaker.ASSISTANT if number % 2 else Speaker.USER
        parent = db.execute(
            "INSERT INTO messages (chat, parent, speaker, text, attachments, ending,"
            " created_unix_s) VALUES (?, ?, ?, ?, '[]', 'complete', 0)",
            (chat, parent, speaker, f"message {number} of many"),
        ).lastrowid
    db.execute("UPDATE chats SET leaf = ? WHERE id = ?", (parent, chat))
    db.execute("COMMIT")
    page = messages.page(db, chat, before=None, limit=50)
    assert page.messages[-1].text == "message 9999 of many"
    first = messages.branch(db, page.messages[-1].id)[0]
    assert first.text == "message 0 of many"
    messages.show(db, chat, first.id)
    assert conversations.info(db, chat).leaf == parent
    found = conversations.listed(db, "message 77 of", after=None, limit=9, deleted=False)
    assert len(found.chats) == 1
    conversations.delete(db, chat, 0.0)
    conversations.empty_trash(db, 2 * conversations.TRASH_S)
    assert db.execute("SELECT count(*) FROM messages").fetchone()[0] == 0
    assert db.execute("SELECT count(*) FROM message_words").fetchone()[0] == 0
