from __future__ import annotations

import heapq

from engine.core.ids import PeerId, SessionId
from engine.server.gathering import Gathering

BATCH = (PeerId("client"), 1)


def ring(groups: list[list[int]], *, pass_rows: int, seconds: float, round_s: float = 0.1):
    """Let groups of rows go round a ring whose first stage gathers: when each pass had how many."""
    gathering = Gathering()
    arrivals = [(index * 0.013, session) for index, g in enumerate(groups) for session in g]
    heapq.heapify(arrivals)
    waiting: list[int] = []
    passes: list[tuple[float, int]] = []
    now_s = 0.0
    while now_s < seconds:
        now_s += 0.001
        while arrivals and arrivals[0][0] <= now_s:
            session = heapq.heappop(arrivals)[1]
            gathering.arrived(BATCH, SessionId(session), now_s)
            waiting.append(session)
        if waiting and gathering.may_go(BATCH, len(waiting), pass_rows, now_s):
            batch, waiting = waiting[:pass_rows], waiting[pass_rows:]
            gathering.took(BATCH)
            passes.append((now_s, len(batch)))
            for session in batch:
                heapq.heappush(arrivals, (now_s + round_s, session))
    return passes


def test_small_groups_become_whole_micro_batches():
    groups = [list(range(4 * i, 4 * i + 4)) for i in range(8)]
    late = [rows for at_s, rows in ring(groups, pass_rows=32, seconds=10) if at_s > 5]
    assert late == [32] * len(late)


def test_as_many_micro_batches_as_are_wanted_are_left_alone():
    groups = [list(range(8 * i, 8 * i + 8)) for i in range(4)]
    passes = ring(groups, pass_rows=8, seconds=10)
    assert {rows for _, rows in passes} == {8}
    assert len(passes) > 4 * 10 / 0.1 * 0.95


def test_holding_what_cannot_grow_costs_little():
    alone = ring([[1], [2]], pass_rows=8, seconds=60)
    assert sum(rows for _, rows in alone) > 2 * 60 / 0.1 * 0.95


def test_sequence_without_others_never_waits():
    passes = ring([[1]], pass_rows=1, seconds=5)
    assert len(passes) >= 5 / 0.1 * 0.98
