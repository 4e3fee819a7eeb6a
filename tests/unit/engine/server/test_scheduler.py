from __future__ import annotations

from dataclasses import replace

from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.protocol.rows import RowFlags
from engine.server.scheduler import Scheduler, Work
from tests.support.builders import work


def take(scheduler: Scheduler, *, rows: int = 8, tokens: int = 64, prefill: int = 64) -> list[Work]:
    return scheduler.take(max_rows=rows, max_tokens=tokens, prefill_tokens=prefill)


def sessions(batch: list[Work]) -> list[int]:
    return [item.row.session for item in batch]


def test_rows_of_different_sessions_and_owners_merge_into_one_pass() -> None:
    scheduler = Scheduler()
    for session, owner in [(1, "a"), (2, "a"), (3, "b")]:
        scheduler.add(work(session, owner=owner))
    assert sorted(sessions(take(scheduler))) == [1, 2, 3]
    assert take(scheduler) == []


def test_owner_with_one_chat_is_not_crowded_out_by_one_with_a_hundred() -> None:
    scheduler = Scheduler()
    for session in range(100):
        scheduler.add(work(session, owner="crowd"))
    scheduler.add(work(1000, owner="lonely"))
    assert 1000 in sessions(take(scheduler, rows=2))


def test_every_session_of_a_crowd_gets_its_turn() -> None:
    scheduler = Scheduler()
    for session in range(10):
        scheduler.add(work(session))
    served = [session for _ in range(5) for session in sessions(take(scheduler, rows=2))]
    assert sorted(served) == list(range(10))


def test_long_prompt_is_cut_and_only_its_last_part_samples() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, 150, width=2))
    parts = [take(scheduler, prefill=64)[0] for _ in range(3)]
    assert [(part.row.position, part.row.count) for part in parts] == [(0, 64), (64, 64), (128, 22)]
    assert [bool(part.row.flags & RowFlags.SAMPLE) for part in parts] == [False, False, True]
    assert [token for part in parts for token in part.ids.tolist()] == list(range(150))
    assert (
        b"".join(piece for part in parts for piece in part.hidden)
        == work(1, 150, width=2).hidden[0]
    )


def test_small_pieces_of_a_prompt_do_not_pass_for_decoding() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, 40, width=2))
    piece = take(scheduler, prefill=4)[0]
    scheduler.add(replace(piece, row=replace(piece.row, session=SessionId(2))))
    assert take(scheduler, prefill=0) == []
    assert sessions(take(scheduler, prefill=4)) == [1]
    assert sessions(take(scheduler, prefill=4)) == [2]


def test_decoding_goes_on_beside_a_long_prompt() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, 1000))
    for _ in range(3):
        scheduler.add(work(2, position=5))
        batch = take(scheduler, prefill=16)
        assert sessions(batch) == [2, 1]
        assert batch[1].row.count == 16


def test_prompt_gets_in_although_decoding_rows_fill_every_pass() -> None:
    scheduler = Scheduler()
    for session in range(8):
        scheduler.add(work(session))
    scheduler.add(work(99, 40))
    assert 99 in sessions(take(scheduler, rows=4))


def test_parts_of_one_session_never_share_a_pass() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, 20))
    scheduler.add(work(1, 20, position=20))
    assert sessions(take(scheduler)) == [1]
    assert sessions(take(scheduler)) == [1]


def test_rows_through_different_blocks_go_in_different_passes_oldest_first() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, span=Span(0, 2), arrived_s=2.0))
    scheduler.add(work(2, span=Span(0, 4), arrived_s=1.0))
    assert sessions(take(scheduler)) == [2]
    assert sessions(take(scheduler)) == [1]


def test_dropped_session_leaves_nothing_behind() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1))
    scheduler.drop(PeerId("client"), SessionId(1))
    scheduler.drop(PeerId("client"), SessionId(1))
    assert scheduler.waiting_tokens(PeerId("client"), SessionId(1)) == 0
    assert take(scheduler) == []


def test_micro_batches_of_one_request_stay_apart_and_those_of_two_share_a_pass() -> None:
    scheduler = Scheduler()
    for session in range(8):
        scheduler.add(work(session, owner="a", pass_rows=2))
    for session in range(10, 14):
        scheduler.add(work(session, owner="b", pass_rows=2))
    passes = [sorted(sessions(take(scheduler, rows=64))) for _ in range(4)]
    assert passes == [[0, 1, 10, 11], [2, 3, 12, 13], [4, 5], [6, 7]]


def test_full_pass_is_a_whole_micro_batch() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, pass_rows=2))
    assert not scheduler.has_full_pass(64)
    scheduler.add(work(2, 100, pass_rows=2))  # prefill does not fill it
    assert not scheduler.has_full_pass(64)
    scheduler.add(work(3, pass_rows=2))
    assert scheduler.has_full_pass(64)


def test_pieces_of_a_row_that_came_one_by_one_are_computed_together() -> None:
    scheduler = Scheduler()
    whole = work(1, 150, width=2)
    first, rest = whole.split(40)
    second, third = rest.split(60)
    for piece in (first, second, third):
        scheduler.add(piece)
    (batch,) = take(scheduler, tokens=512, prefill=512)
    assert batch.row == whole.row
    assert batch.ids.tolist() == whole.ids.tolist()
    assert b"".join(batch.hidden) == whole.hidden[0]


def test_pieces_are_cut_anew_where_the_pass_ends() -> None:
    scheduler = Scheduler()
    whole = work(1, 150, width=2)
    first, second = whole.split(40)
    scheduler.add(first)
    scheduler.add(second)
    parts = [take(scheduler)[0] for _ in range(3)]
    assert [(part.row.position, part.row.count) for part in parts] == [(0, 64), (64, 64), (128, 22)]
    assert b"".join(p for part in parts for p in part.hidden) == whole.hidden[0]


def test_a_replay_is_not_joined_to_what_it_replaces() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, 40))
    scheduler.add(work(1, 40, position=20))
    assert [part.row.position for part in take(scheduler, tokens=512, prefill=512)] == [0]
    assert [part.row.position for part in take(scheduler, tokens=512, prefill=512)] == [20]


def test_prefill_that_may_not_go_waits_without_stopping_others() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, 100))
    scheduler.add(work(2, 100))
    scheduler.add(work(3))
    limits = {"max_rows": 8, "max_tokens": 512, "prefill_tokens": 512}
    batch = scheduler.take(**limits, may_prefill=lambda item: item.row.session != 1)
    assert sessions(batch) == [3, 2]
    assert scheduler.take(**limits, may_prefill=lambda item: False) == []
    assert not scheduler.is_empty


def test_two_long_prompts_take_turns() -> None:
    scheduler = Scheduler()
    scheduler.add(work(1, 1000))
    scheduler.add(work(2, 1000))
    assert [sessions(take(scheduler)) for _ in range(4)] == [[1], [2], [1], [2]]
