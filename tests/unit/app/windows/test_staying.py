from __future__ import annotations

from app.windows.staying import Staying, are_same, staying
from engine.localapi.chats import Message
from tests.support.app_states import question


def turns(*ids: int) -> list[Message]:
    return [question(id_, f"Message {id_}", None) for id_ in ids]


def test_cards_of_messages_before_a_branch_stay() -> None:
    assert staying(turns(3, 4, 5), turns(1, 2, 3, 4, 9)) == Staying(start=0, count=2, first=2)


def test_cards_stay_where_older_messages_have_come() -> None:
    assert staying(turns(5, 6), turns(3, 4, 5, 6)) == Staying(start=0, count=2, first=2)


def test_no_card_stays_in_another_conversation() -> None:
    assert staying(turns(1, 2), turns(7, 8, 9)) == Staying(start=2, count=0, first=3)


def test_the_same_means_the_same_values() -> None:
    ones = tuple(turns(1, 2))
    assert are_same(ones, tuple(ones))
    assert not are_same(ones, ones[:1])
    assert not are_same(ones, tuple(turns(1, 2)))
