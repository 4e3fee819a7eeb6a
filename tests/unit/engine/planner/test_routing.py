from __future__ import annotations

import pytest

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.plans import Hop, Span
from engine.core.snapshot import StageState
from engine.planner.routing import find_route, uncovered
from tests.support.builders import snapshot, stage_info


def test_route_covers_every_block_once_in_order() -> None:
    swarm = snapshot(30, stage_info("c", 20, 30), stage_info("a", 0, 12), stage_info("b", 8, 22))
    route = find_route(swarm)
    assert [hop.peer for hop in route.hops] == ["a", "b", "c"]
    assert route.hops[0].span.start == 0
    assert route.hops[-1].span.end == 30
    for before, after in zip(route.hops, route.hops[1:], strict=False):
        assert before.span.end == after.span.start


def test_one_stage_that_holds_all_beats_three_hops() -> None:
    swarm = snapshot(
        30,
        stage_info("a", 0, 10),
        stage_info("b", 10, 20),
        stage_info("c", 20, 30),
        stage_info("whole", 0, 30),
    )
    assert find_route(swarm).hops == (Hop(PeerId("whole"), Span(0, 30)),)


def test_route_avoids_peer_that_failed() -> None:
    swarm = snapshot(8, stage_info("a", 0, 8), stage_info("b", 0, 8))
    assert find_route(swarm, avoid=frozenset({PeerId("a")})).first == "b"


def test_equal_costs_are_decided_by_peer_id_whatever_the_order_of_the_snapshot() -> None:
    one, two = stage_info("x", 0, 8), stage_info("b", 0, 8)
    assert find_route(snapshot(8, one, two)) == find_route(snapshot(8, two, one))
    assert find_route(snapshot(8, one, two)).first == "b"


def test_nearer_and_faster_stages_win() -> None:
    swarm = snapshot(
        8,
        stage_info("far", 0, 8, decode_tokens_per_s=100),
        stage_info("near", 0, 8, decode_tokens_per_s=90),
    )
    links = {PeerId("far"): 0.2, PeerId("near"): 0.01}
    assert find_route(swarm, link_s=links).first == "near"
    links = {PeerId("far"): 0.01, PeerId("near"): 0.01}
    assert find_route(swarm, link_s=links).first == "far"


def test_full_stage_is_the_last_choice_but_a_choice() -> None:
    full, free = stage_info("a", 0, 8, kv_free_tokens=5), stage_info("b", 0, 8)
    assert find_route(snapshot(8, full, free), need_tokens=100).first == "b"
    assert find_route(snapshot(8, full), need_tokens=100).first == "a"


@pytest.mark.parametrize("state", [StageState.JOINING, StageState.DRAINING, StageState.OFFLINE])
def test_only_online_stages_are_used(state: StageState) -> None:
    swarm = snapshot(8, stage_info("a", 0, 8, state=state))
    with pytest.raises(NoRoute, match="No stage of this model is online"):
        find_route(swarm)


def test_missing_blocks_are_named() -> None:
    swarm = snapshot(30, stage_info("a", 0, 10), stage_info("c", 20, 30))
    with pytest.raises(NoRoute, match="Nobody serves blocks 10–19"):
        find_route(swarm)


def test_gap_that_a_joining_stage_will_close_is_worth_waiting_for() -> None:
    joining = stage_info("b", 4, 8, state=StageState.JOINING)
    swarm = snapshot(8, stage_info("a", 0, 4), joining)
    assert uncovered(swarm) == [Span(4, 8)]
    assert uncovered(swarm, joining=True) == []


def test_peer_is_never_used_twice() -> None:
    swarm = snapshot(8, stage_info("a", 0, 8), stage_info("b", 2, 4))
    assert len(find_route(swarm).hops) == 1
