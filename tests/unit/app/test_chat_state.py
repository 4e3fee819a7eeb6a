from __future__ import annotations

from app.chat_messages import (
    AnswerAsked,
    AnswerBegun,
    AnswerEnded,
    AnswerLost,
    ChatBegun,
    ChatDeleted,
    ChatNotOpened,
    ChatOpened,
    ChatOpening,
    ChatRestored,
    ChatSettled,
    ChatsListed,
    ChatsSought,
    OlderArrived,
    OlderWanted,
    UndoExpired,
)
from app.chat_state import Answering, Chat
from app.messages import Message as AppMessage
from engine.localapi.chats import ChatList, ChatSettings, ChatSummary, Ending, MessagePage
from tests.support.app_states import after, answer, answered, begun, grew, info, question


def chat(*messages: AppMessage) -> Chat:
    return after(*messages).chats.open


def texts(shown: Chat) -> list[str]:
    return [turn.text for turn in shown.turns]


def listed(*numbers: int, more: bool = False) -> ChatList:
    return ChatList(
        chats=tuple(
            ChatSummary(id=number, title=f"chat {number}", updated_unix_s=0.0) for number in numbers
        ),
        more=more,
    )


def opened(*texts: str, more: bool = False) -> tuple[AppMessage, ...]:
    turns = tuple(
        (question if at % 2 else answer)(at, text, at - 1) for at, text in enumerate(texts, 1)
    )
    return ChatOpening(1), ChatOpened(info(), MessagePage(messages=turns, more=more))


def test_answer_grows_with_each_token_and_ends_as_it_is_kept():
    growing = chat(*begun(1), grew("Because", 1, 0.0), grew(" so", 2, 0.1))
    assert texts(growing) == ["Why?", "Because so"]
    assert growing.answering is Answering.STREAMING
    over = chat(*answered("Why?", "Because it is so"))
    assert texts(over) == ["Why?", "Because it is so"]
    assert over.answering is Answering.NOT
    assert over.turns[-1].ending is Ending.COMPLETE


def test_new_conversation_gets_its_number_from_the_engine():
    asked = chat(ChatBegun(ChatSettings(system_prompt="Be brief.")), AnswerAsked())
    assert (asked.id, asked.answering) == (None, Answering.ASKED)
    settled = chat(AnswerAsked(), ChatSettled(info(7, "Fish")))
    assert (settled.id, settled.title) == (7, "Fish")
    assert chat(ChatSettled(info(7, "Fish"))).id is None


def test_rate_counts_the_time_between_first_and_last_token():
    growing = chat(*begun(1), *(grew("x", at + 1, 5.0 + at / 4) for at in range(9)))
    assert growing.tokens_per_s == 4.0


def test_rate_of_a_continued_answer_counts_its_new_tokens_only():
    whole = answer(2, "So", 1, tokens=100, ending="stopped")
    more = AnswerBegun(1, None, whole.model_copy(update={"ending": None}))
    continued = chat(
        *begun(1), AnswerEnded(1, whole), AnswerAsked(), more,
        *(grew("x", 101 + at, at / 10) for at in range(5)),
    )  # fmt: skip
    assert texts(continued) == ["Why?", "Soxxxxx"]
    assert round(continued.tokens_per_s, 6) == 10.0


def test_edited_question_takes_the_place_of_what_followed():
    more = (*answered("one", "1"), *answered("two", "2", 3))
    edited = (AnswerAsked(), AnswerBegun(1, question(9, "TWO", 2), answer(10, "", 9, ending=None)))
    assert texts(chat(*more, *edited)) == ["one", "1", "TWO", ""]
    first = (AnswerAsked(), AnswerBegun(1, question(9, "ONE"), answer(10, "", 9, ending=None)))
    assert texts(chat(*more, *first)) == ["ONE", ""]


def test_answer_given_again_takes_the_place_of_the_old_one():
    again = (AnswerAsked(), AnswerBegun(1, None, answer(9, "", 1, ending=None)))
    assert texts(chat(*answered("one", "1"), *answered("two", "2", 3), *again)) == ["one", ""]


def test_what_another_conversation_answers_changes_nothing_here():
    here = (*opened("Why?", "So."),)
    elsewhere = AnswerBegun(5, question(50, "x"), answer(51, "", 50, ending=None))
    assert chat(*here, elsewhere) == chat(*here)
    assert chat(*here, AnswerEnded(5, answer(51, "y", 50))) == chat(*here)


def test_text_that_comes_after_the_end_is_dropped():
    over = answered("Why?", "So")
    assert chat(*over, grew("late", 9, 1.0)) == chat(*over)


def test_composer_is_emptied_only_by_what_the_engine_has_taken():
    assert chat(*begun(1)).said == 1
    assert chat(AnswerAsked(), AnswerLost("Not ready.")).said == 0
    again = (AnswerAsked(), AnswerBegun(1, None, answer(9, "", 1, ending=None)))
    assert chat(*answered("one", "1"), *again).said == 1


def test_lost_answer_says_why_and_lets_one_ask_again():
    lost = chat(*begun(1), grew("Bec", 1, 0.0), AnswerLost("The connection broke."))
    assert (lost.failure, lost.answering) == ("The connection broke.", Answering.NOT)
    assert texts(lost) == ["Why?", "Bec"]
    failed = answer(2, "Bec", 1, ending="failed", failure="No route.")
    assert chat(*begun(1), AnswerEnded(1, failed)).failure == "No route."


def test_opened_conversation_under_way_waits_for_more():
    turns = (question(1, "Why?"), answer(2, "Bec", 1, ending=None))
    page = MessagePage(messages=turns, more=False)
    assert chat(ChatOpening(1), ChatOpened(info(), page)).answering is Answering.WAITING


def test_conversation_that_is_no_longer_wanted_does_not_open():
    late = ChatOpened(info(1), MessagePage(messages=(question(1, "x"),), more=False))
    shown = chat(ChatOpening(1), ChatOpening(2), late)
    assert (shown.id, shown.turns, shown.opening) == (2, (), True)
    assert chat(ChatOpening(2), ChatNotOpened(2, "Gone.")).failure == "Gone."


def test_older_messages_come_before_the_known_ones_unless_another_branch_is_shown():
    turns = (question(5, "q5", 4), answer(6, "a6", 5))
    here = (ChatOpening(1), ChatOpened(info(), MessagePage(messages=turns, more=True)))
    older = MessagePage(messages=(question(3, "q3"), answer(4, "a4", 3)), more=False)
    assert chat(*here, OlderWanted(1)).older_coming
    more = chat(*here, OlderWanted(1), OlderArrived(1, older))
    assert texts(more) == ["q3", "a4", "q5", "a6"]
    assert (more.more, more.older_coming) == (False, False)
    strange = MessagePage(messages=(answer(99, "?", 98),), more=False)
    assert texts(chat(*here, OlderArrived(1, strange))) == ["q5", "a6"]


def test_list_grows_by_pages_and_holds_nothing_twice():
    state = after(ChatsListed("", None, listed(5, 4, more=True)), ChatsListed("", 4, listed(4, 3)))
    assert [known.id for known in state.chats.listed] == [5, 4, 3]
    assert not state.chats.more


def test_list_for_words_that_are_no_longer_wanted_is_dropped():
    state = after(ChatsSought("eel"), ChatsListed("ee", None, listed(1)))
    assert state.chats.listed == ()


def test_answered_conversation_moves_to_the_front_and_is_marked():
    known = (ChatsListed("", None, listed(2, 1)), *opened("Why?", "So."))
    again = AnswerBegun(1, None, answer(9, "", 1, ending=None))
    rows = after(*known, again).chats.listed
    assert [(row.id, row.answering) for row in rows] == [(1, True), (2, False)]
    ended = after(*known, again, AnswerEnded(1, answer(9, "x", 1))).chats.listed
    assert not ended[0].answering


def test_deleted_conversation_leaves_the_list_and_can_be_brought_back():
    known = (ChatsListed("", None, listed(2, 1)), *opened("Why?", "So."))
    gone = after(*known, ChatDeleted(info(1)))
    assert [row.id for row in gone.chats.listed] == [2]
    assert gone.chats.open.id is None
    assert gone.chats.undo is not None
    back = after(ChatRestored(info(1)), start=gone)
    assert [row.id for row in back.chats.listed] == [1, 2]
    assert back.chats.undo is None
    assert after(UndoExpired(), start=gone).chats.undo is None
