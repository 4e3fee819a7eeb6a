from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.plans import Hop, Span
from engine.core.snapshot import StageState
from engine.planner.routing import find_route, left_alone, uncovered
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


def test_stage_without_room_in_ram_is_the_last_choice_for_those_who_want_it() -> None:
    full, free = stage_info("a", 0, 8, kv_ram_free_tokens=5), stage_info("b", 0, 8)
    assert find_route(snapshot(8, full, free), need_ram_tokens=100).first == "b"
    assert find_route(snapshot(8, full, free), need_tokens=100).first == "a"


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


def hop(peer: str, start: int, end: int) -> Hop:
    return Hop(PeerId(peer), Span(start, end))


KEPT = (hop("a", 0, 4), hop("c", 6, 8))


def test_hops_that_live_keep_their_blocks_and_the_cheapest_spare_fills_the_gap() -> None:
    swarm = snapshot(
        8,
        stage_info("a", 0, 4),
        stage_info("c", 6, 8),
        stage_info("slow", 3, 8, decode_tokens_per_s=1),
        stage_info("spare", 4, 6, decode_tokens_per_s=50),
        stage_info("whole", 0, 8, decode_tokens_per_s=5000),
    )
    links = {PeerId("spare"): 0.01, PeerId("slow"): 0.01, PeerId("whole"): 0.05}
    repaired = find_route(swarm, kept=KEPT, link_s=links)
    assert repaired.hops == (KEPT[0], hop("spare", 4, 6), KEPT[1])
    assert find_route(swarm, link_s=links).first == "whole"


def test_hop_that_lives_is_used_though_it_drains_or_is_not_announced() -> None:
    draining = stage_info("a", 0, 4, state=StageState.DRAINING)
    swarm = snapshot(8, draining, stage_info("spare", 4, 6))
    assert find_route(swarm, kept=KEPT).hops == (KEPT[0], hop("spare", 4, 6), KEPT[1])


def test_two_stages_may_fill_one_gap() -> None:
    swarm = snapshot(8, stage_info("m", 4, 5), stage_info("n", 5, 8))
    repaired = find_route(swarm, kept=KEPT)
    assert repaired.hops == (KEPT[0], hop("m", 4, 5), hop("n", 5, 6), KEPT[1])


def test_gap_that_only_new_hops_around_it_can_close_begins_anew() -> None:
    swarm = snapshot(8, stage_info("a", 0, 6), stage_info("c", 6, 8))
    assert find_route(swarm, kept=KEPT).hops == (hop("a", 0, 6), hop("c", 6, 8))


def test_route_goes_around_a_pair_that_cannot_reach_each_other() -> None:
    swarm = snapshot(
        8,
        stage_info("a", 0, 4),
        stage_info("b", 4, 8),
        stage_info("a2", 0, 4, decode_tokens_per_s=1),
        stage_info("b2", 4, 8, decode_tokens_per_s=0.5),
    )
    pair = (PeerId("a"), PeerId("b"))
    route = find_route(swarm, broken=frozenset({pair}))
    assert [found.peer for found in route.hops] == ["a2", "b"]
    ring = find_route(swarm, broken=frozenset({(PeerId("b"), PeerId("a"))}))
    assert [found.peer for found in ring.hops] == ["a2", "b"]
    only = snapshot(8, stage_info("a", 0, 4), stage_info("b", 4, 8))
    with pytest.raises(NoRoute, match="trying them again"):
        find_route(only, broken=frozenset({pair}))


def test_neighbouring_stages_are_chosen_by_how_far_they_are_from_each_other() -> None:
    swarm = replace(
        snapshot(8, stage_info("a", 0, 4), stage_info("far", 4, 8), stage_info("near", 4, 8)),
        link_s={PeerId("a"): {PeerId("far"): 0.09, PeerId("near"): 0.02}},
    )
    from_here = {PeerId("a"): 0.01, PeerId("far"): 0.01, PeerId("near"): 0.06}
    assert find_route(swarm, link_s=from_here).last == "near"


def test_way_back_from_the_last_stage_to_the_first_counts() -> None:
    swarm = replace(
        snapshot(8, stage_info("a", 0, 4), stage_info("b", 0, 4), stage_info("last", 4, 8)),
        link_s={PeerId("last"): {PeerId("a"): 0.2, PeerId("b"): 0.01}},
    )
    assert find_route(swarm).first == "b"


def test_pair_that_must_meet_over_relays_costs_more_until_somebody_has_measured_it() -> None:
    circuit = ("/ip4/45.77.0.1/tcp/1/p2p/Qm/p2p-circuit",)
    home, other = (
        replace(stage_info("home", 0, 4), addresses=circuit),
        replace(stage_info("a-home", 4, 8), addresses=circuit),
    )
    swarm = snapshot(8, home, other, stage_info("open", 4, 8))
    assert find_route(swarm).last == "open"
    punched = {PeerId("home"): {PeerId("a-home"): 0.01}}
    assert find_route(replace(swarm, link_s=punched)).last == "a-home"


@given(data=st.data())
def test_route_is_the_cheapest_of_all_rings(data: st.DataObject) -> None:
    layers = [
        [f"{name}{layer}" for name in "abcd"[: data.draw(st.integers(1, 4))]]
        for layer in range(data.draw(st.integers(2, 4)))
    ]
    stages = [
        stage_info(name, 2 * layer, 2 * layer + 2)
        for layer, names in enumerate(layers)
        for name in names
    ]
    times = st.floats(0.001, 0.2)
    peers = [stage.peer for stage in stages]
    from_here = {peer: data.draw(times) for peer in peers}
    measured = {
        one: {other: data.draw(times) for other in peers if data.draw(st.booleans())}
        for one in peers
    }

    def one_way_s(one: PeerId, other: PeerId) -> float:
        own, others = measured[one].get(other), measured[other].get(one)
        return next((s for s in (own, others) if s is not None), from_here[other])

    def cost(ring: tuple[PeerId, ...]) -> float:
        return sum(one_way_s(ring[i - 1], ring[i]) for i in range(len(ring)))

    swarm = replace(snapshot(2 * len(layers), *stages), link_s=measured)
    found = tuple(hop.peer for hop in find_route(swarm, link_s=from_here).hops)
    best = min(cost(tuple(map(PeerId, ring))) for ring in product(*layers))
    assert cost(found) == pytest.approx(best)


def test_of_two_that_leave_the_same_blocks_only_the_first_may_go() -> None:
    first = stage_info("A", 0, 4, next_span=Span(4, 8))
    second = stage_info("B", 0, 4, next_span=Span(4, 8))
    third = stage_info("C", 4, 8)
    swarm = snapshot(8, first, second, third)
    assert left_alone(swarm, PeerId("A"), Span(4, 8)) == []
    assert left_alone(swarm, PeerId("B"), Span(4, 8)) == [0, 1, 2, 3]
    assert left_alone(swarm, PeerId("B"), Span(2, 6)) == [0, 1]
    assert left_alone(swarm, PeerId("C"), None) == [4, 5, 6, 7]


def test_blocks_of_stages_that_do_not_serve_yet_or_any_more_count_as_left_alone() -> None:
    joining = stage_info("B", 0, 4, state=StageState.JOINING)
    draining = stage_info("C", 0, 4, state=StageState.DRAINING)
    swarm = snapshot(4, stage_info("A", 0, 4), joining, draining)
    assert left_alone(swarm, PeerId("A"), Span(0, 1)) == [1, 2, 3]
