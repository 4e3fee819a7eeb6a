from __future__ import annotations

import pytest

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.kv_room import KvRoom
from engine.core.snapshot import StageInfo
from engine.planner.chains import disjoint_routes, share_out
from engine.planner.routing import find_route
from tests.support.builders import snapshot, stage_info

NEAR = {PeerId(name): 0.0 for name in "ABCDE"}


def stage(
    peer: str, start: int, end: int, *, pass_s: float, row_s: float, **fields: object
) -> StageInfo:
    return stage_info(
        peer, start, end, decode_tokens_per_s=1 / pass_s, decode_row_s=row_s, **fields
    )


def rows(*stages: StageInfo, batch_size: int = 32, room: int = 10) -> dict[tuple[str, ...], int]:
    swarm, row_room = snapshot(4, *stages), KvRoom(room, 0)
    routes = disjoint_routes(swarm, batch_size, row_room=row_room, link_s=NEAR)
    chains = share_out(routes, swarm, batch_size, row_room=row_room, link_s=NEAR, row_bytes=64)
    return {tuple(hop.peer for hop in chain.route.hops): chain.rows for chain in chains}


def test_batch_is_dealt_to_chains_in_proportion_to_what_they_can_do() -> None:
    fast = stage("A", 0, 4, pass_s=0.01, row_s=0.01)
    equal = rows(fast, stage("B", 0, 4, pass_s=0.01, row_s=0.01))
    assert equal == {("A",): 16, ("B",): 16}
    slow = (stage("B", 0, 2, pass_s=0.02, row_s=0.02), stage("C", 2, 4, pass_s=0.02, row_s=0.02))
    # The two halves work at the same time, so together they are half as fast as A, not a quarter.
    assert rows(fast, *slow, batch_size=30) == pytest.approx({("A",): 20, ("B", "C"): 10}, abs=2)


def test_chain_that_one_row_would_wait_longer_for_gets_none() -> None:
    fast, slow = (
        stage("A", 0, 4, pass_s=0.01, row_s=0.0001),
        stage("B", 0, 4, pass_s=1.0, row_s=0.0001),
    )
    assert rows(fast, slow) == {("A",): 32}


def test_one_chain_is_enough_where_rows_cost_next_to_nothing() -> None:
    alike = [stage(name, 0, 4, pass_s=0.01, row_s=0.0) for name in "AB"]
    assert rows(*alike) == {("A",): 32}


def test_rows_go_where_there_is_room_for_them() -> None:
    full = stage("A", 0, 4, pass_s=0.01, row_s=0.0, kv_free_tokens=45)
    free = stage("B", 0, 4, pass_s=0.02, row_s=0.0)
    assert rows(full, free, batch_size=10) == {("A",): 4, ("B",): 6}
    nowhere = stage("A", 0, 4, pass_s=0.01, row_s=0.0, kv_free_tokens=5)
    assert rows(nowhere, batch_size=10) == {("A",): 10}


def test_chains_share_no_peer() -> None:
    only = stage("C", 2, 4, pass_s=0.01, row_s=0.01)
    firsts = [stage(name, 0, 2, pass_s=0.01, row_s=0.01) for name in "AB"]
    assert rows(only, *firsts) == {("A", "C"): 32}
    with pytest.raises(NoRoute):
        rows(*firsts)


def test_stage_that_many_use_is_left_to_them() -> None:
    busy = stage("A", 0, 4, pass_s=0.01, row_s=0.001, sessions=30)
    idle = stage("B", 0, 4, pass_s=0.015, row_s=0.001)
    assert find_route(snapshot(4, busy, idle), link_s=NEAR).first == "B"
    shares = rows(busy, idle, batch_size=40)
    assert shares[("B",)] > shares[("A",)] > 0
    assert shares[("A",)] + 30 == pytest.approx(shares[("B",)], abs=6)
