"""Drafts one behind another at a stage, before anybody knows what becomes of the first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from engine.core.errors import RemoteProtocolError
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Hop, Route, Span
from engine.protocol.rows import MAX_OPEN_DRAFTS, Row, RowFlags
from engine.server.drafts import OpenDrafts
from engine.server.sessions import Session

BASE = 10
"""Tokens of the sequence before the first draft."""
WIDTH = 2
FLAGS = RowFlags.SAMPLE | RowFlags.OPEN


def chain(count: int) -> tuple[int, ...]:
    return tuple(range(-1, count - 1))


def ids_of(row: Row) -> npt.NDArray[np.int32]:
    """A token's id is its position."""
    return np.arange(row.position, row.position + row.count, dtype=np.int32)


FIRST = Row(SessionId(1), BASE - 1, 4, 0, FLAGS, chain(3))
"""A token of the sequence's own, and three that are drafted behind it."""


def goes_on(position: int, count: int = 3, under_way: int = 1) -> Row:
    return Row(SessionId(1), position, count, 0, FLAGS, chain(count), under_way)


def goes_back(position: int, accepted: int) -> Row:
    return Row(SessionId(1), position, 1, 0, FLAGS, (), accepted)


def compute(drafts: OpenDrafts, row: Row) -> None:
    draft = drafts.of(row)
    assert draft is not None
    draft.computed(np.repeat(ids_of(row).astype(np.uint8), WIDTH).tobytes())


def three_drafts() -> tuple[OpenDrafts, list[Row]]:
    rows = [FIRST, goes_on(13, under_way=1), goes_on(16, under_way=2)]
    drafts = OpenDrafts()
    for row in rows:
        drafts.arrived(row, ids_of(row))
        compute(drafts, row)
    return drafts, rows


def settled_ids(drafts: OpenDrafts, row: Row) -> list[int]:
    """And the outputs belong to them."""
    kept = drafts.settled(row)
    ids = [id_ for some in kept for id_ in some.ids.tolist()]
    assert b"".join(some.hidden for some in kept) == bytes(id_ for id_ in ids for _ in range(WIDTH))
    assert all(some.position == some.ids[0] for some in kept if len(some.ids))
    return ids


@pytest.mark.parametrize("under_way", [1, 2, 3])
def test_draft_that_follows_settles_all_but_those_that_it_says_are_under_way(
    under_way: int,
) -> None:
    drafts, _ = three_drafts()
    row = goes_on(19, under_way=under_way)
    assert settled_ids(drafts, row) == list(range(BASE, 19 - 3 * under_way))
    drafts.arrived(row, ids_of(row))
    assert len(drafts) == under_way + 1


@pytest.mark.parametrize(
    ("position", "accepted"),
    [(10, 0), (11, 1), (13, 3), (14, 1), (16, 3), (17, 1), (19, 3)],
)
def test_row_of_the_sequences_own_says_by_its_position_where_all_of_them_end(
    position: int, accepted: int
) -> None:
    drafts, _ = three_drafts()
    row = goes_back(position, accepted)
    assert settled_ids(drafts, row) == list(range(BASE, position))
    drafts.arrived(row, ids_of(row))
    assert len(drafts) == 0


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (goes_on(18), "no chain, or not here"),
        (goes_on(20), "no chain, or not here"),
        (goes_on(16), "no chain, or not here"),
        (goes_on(19, under_way=0), "under way"),
        (goes_on(19, under_way=4), "under way"),
        (goes_on(19, under_way=200), "under way"),
        (replace(goes_on(19), parents=(-1, -1, 0)), "with a tree"),
        (goes_back(12, 1), "does not fit together"),
        (goes_back(19, 2), "does not fit together"),
        (goes_back(20, 3), "does not fit together"),
    ],
)
def test_row_that_does_not_follow_is_refused_and_changes_nothing(row: Row, reason: str) -> None:
    drafts, rows = three_drafts()
    with pytest.raises(RemoteProtocolError, match=reason):
        drafts.settled(row)
    assert [drafts.of(each) is not None for each in rows] == [True] * 3


def test_nothing_goes_on_from_a_tree_or_from_nothing() -> None:
    drafts = OpenDrafts()
    with pytest.raises(RemoteProtocolError, match="no chain, or not here"):
        drafts.settled(goes_on(13))
    tree = replace(FIRST, parents=(-1, -1, 0))
    drafts.arrived(tree, ids_of(tree))
    with pytest.raises(RemoteProtocolError, match="no chain, or not here"):
        drafts.settled(goes_on(13))


def test_no_more_are_open_than_a_stage_remembers() -> None:
    drafts, position = OpenDrafts(), 13
    drafts.arrived(FIRST, ids_of(FIRST))
    for under_way in range(1, MAX_OPEN_DRAFTS):
        row = goes_on(position, under_way=under_way)
        drafts.settled(row)
        drafts.arrived(row, ids_of(row))
        position += row.count
    with pytest.raises(RemoteProtocolError, match="may be"):
        drafts.settled(goes_on(position, under_way=MAX_OPEN_DRAFTS))


def test_what_was_never_computed_cannot_be_the_sequences_own() -> None:
    drafts, row = OpenDrafts(), goes_on(13)
    for each in (FIRST, row):
        drafts.arrived(each, ids_of(each))
    compute(drafts, FIRST)
    assert drafts.settled(goes_back(12, 2))
    for lie in (goes_back(14, 1), goes_on(16, under_way=0)):
        with pytest.raises(RemoteProtocolError):
            drafts.settled(lie)


def test_last_stage_forgets_what_its_own_token_refutes_and_takes_no_more_of_it() -> None:
    drafts, rows = three_drafts()
    drafts.judged(rows[0], 3, 13)  # what the next draft begins with
    assert not drafts.is_refuted
    drafts.judged(rows[1], 3, 99)
    assert drafts.is_refuted
    assert drafts.of(rows[2]) is None
    late = goes_on(19)
    assert drafts.is_void(late, ids_of(late))
    row = goes_back(16, 3)
    assert not drafts.is_void(row, ids_of(row))
    assert settled_ids(drafts, row) == list(range(BASE, 16))
    drafts.arrived(row, ids_of(row))
    assert not drafts.is_refuted


@pytest.mark.parametrize(
    ("accepted", "next_id", "void"), [(3, 13, False), (3, 14, True), (2, 12, True), (3, None, True)]
)
def test_draft_that_comes_after_the_verdict_is_held_against_it(
    accepted: int, next_id: int | None, void: bool
) -> None:
    drafts, row = OpenDrafts(), goes_on(13)
    drafts.arrived(FIRST, ids_of(FIRST))
    compute(drafts, FIRST)
    drafts.judged(FIRST, accepted, next_id)
    assert drafts.is_void(row, ids_of(row)) is void


def session() -> Session:
    hops = (Hop(PeerId("s0"), Span(0, 2)), Hop(PeerId("s1"), Span(2, 4)))
    return Session(
        id=SessionId(1),
        owner=PeerId("client"),
        request=1,
        pass_rows=1,
        route=Route(hops),
        index=0,
        capacity_tokens=64,
        draft_tokens=8,
        prompt_tokens=5,
        attempt=0,
        room_bytes=0,
        ram_room_bytes=0,
        expires_s=0.0,
        position=BASE - 1,
        computed=BASE - 1,
    )


def test_accepted_tokens_count_once_the_worker_has_been_given_the_row_that_says_so() -> None:
    ours, tree = session(), replace(FIRST, parents=(-1, -1, 1))
    ours.arrived(tree, ids_of(tree))
    ours.begin(tree.position, ids_of(tree)[:1])
    compute(ours.drafts, tree)
    ours.emit(tree.position, 1)
    row = goes_back(12, 3)
    ours.arrived(row, ids_of(row))
    assert (ours.position, ours.computed) == (13, BASE)
    waiting = replace(ours, settled=list(ours.settled))
    (kept,) = ours.take_settled()
    assert kept.ids.tolist() == [11, 12]
    assert ours.computed == 12
    waiting.hold(1)  # the row is dropped, and what it said with it
    assert (waiting.position, waiting.computed, waiting.take_settled()) == (BASE, BASE, [])


def test_session_goes_on_to_where_its_drafts_are_settled_and_no_further() -> None:
    ours = session()
    for row in (FIRST, goes_on(13, under_way=1), goes_on(16, under_way=2)):
        ours.arrived(row, ids_of(row))
        compute(ours.drafts, row)
    ours.emit(FIRST.position, 1)
    assert (ours.position, ours.computed) == (BASE, BASE)
    row = goes_on(19, under_way=1)
    ours.arrived(row, ids_of(row))
    assert ours.position == 16
    assert [kept.end for kept in ours.take_settled()] == [13, 16]
    assert ours.computed == 16
