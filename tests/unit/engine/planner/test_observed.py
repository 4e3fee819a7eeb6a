"""Who is slow, from how long whole routes take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from engine.core.ids import PeerId
from engine.core.plans import Hop, Route, Span
from engine.core.snapshot import SwarmSnapshot
from engine.planner.observed import HALF_LIFE_S, MAX_SEEN, Cycle, Observations, believe, learned
from engine.planner.routing import expected_block_s, find_route
from tests.support.builders import snapshot, stage_info

LINK_S = 0.001


def chain(hops: int, *, lie_s: float = 0.002) -> SwarmSnapshot:
    """Stages of two blocks and 20 ms each, and two for the last two blocks: the liar, and 30 ms."""
    first = [
        stage_info(f"a{hop}", 2 * hop, 2 * hop + 2, decode_tokens_per_s=50)
        for hop in range(hops - 1)
    ]
    end = 2 * hops
    liar = stage_info("liar", end - 2, end, decode_tokens_per_s=1 / lie_s)
    other = stage_info("other", end - 2, end, decode_tokens_per_s=1 / 0.03)
    return snapshot(end, *first, liar, other)


def use(
    swarm: SwarmSnapshot, seen: Observations, pass_s: Mapping[str, float], now_s: float
) -> tuple[Route, Observations]:
    """A request along the best route; `pass_s` of those that do not take what they say."""
    link_s = {stage.peer: LINK_S for stage in swarm.stages}
    route = find_route(believe(swarm, seen, now_s), link_s=link_s)
    time_s = 0.0
    for hop in route.hops:
        stage = swarm.stage(hop.peer)
        assert stage is not None
        time_s += pass_s.get(hop.peer, len(hop.span) * expected_block_s(stage)) + LINK_S
    return route, learned(seen, Cycle(route, swarm, link_s, time_s), now_s)


@pytest.mark.parametrize("hops", [2, 3, 4])
@pytest.mark.parametrize("pass_s", [0.06, 0.1])
def test_liar_is_left_after_a_few_requests_wherever_it_stands(hops: int, pass_s: float) -> None:
    swarm, seen, last = chain(hops), {}, []
    for request in range(20):
        route, seen = use(swarm, seen, {"liar": pass_s}, 60.0 * request)
        last.append(route.last)
    assert last[0] == "liar"
    assert "other" in last[:2]
    assert last[10:] == ["other"] * 10
    # The honest ones that had to be on all its routes are as fast as they say again.
    believed = find_route(believe(swarm, seen, 1200.0)).hops
    assert [hop.peer for hop in believed[:-1]] == [f"a{hop}" for hop in range(hops - 1)]
    first = believe(swarm, seen, 1200.0).stages[0]
    assert first.decode_tokens_per_s == pytest.approx(50, rel=0.2)


def test_liar_that_comes_back_with_a_bolder_lie_stays_where_it_belongs() -> None:
    seen: Observations = {}
    for request in range(12):
        _, seen = use(chain(2), seen, {"liar": 0.1}, 60.0 * request)
    bolder = believe(chain(2, lie_s=0.0001), seen, 800.0)
    assert find_route(bolder).last == "other"


def test_stage_that_has_become_faster_is_used_again_some_day() -> None:
    swarm, seen = chain(2), {}
    for request in range(12):
        _, seen = use(swarm, seen, {"liar": 0.1}, 60.0 * request)
    assert use(swarm, seen, {}, HALF_LIFE_S / 10)[0].last == "other"
    for day in (6, 7, 8):
        route, seen = use(swarm, seen, {}, day * HALF_LIFE_S)
        assert route.last == "liar"


def test_honest_swarm_is_believed_whatever_frames_and_contexts_take() -> None:
    swarm, seen = chain(3, lie_s=0.02), {}
    slower = {stage.peer: 0.022 for stage in swarm.stages}
    for request in range(10):
        _, seen = use(swarm, seen, slower, 60.0 * request)
    assert believe(swarm, seen, 700.0).stages == swarm.stages


def test_micro_batches_and_rows_that_share_a_pass_are_not_held_against_a_stage() -> None:
    swarm = chain(2, lie_s=0.02)
    swarm = replace(
        swarm, stages=tuple(replace(stage, decode_row_s=0.002) for stage in swarm.stages)
    )
    route = Route((Hop(PeerId("a0"), Span(0, 2)), Hop(PeerId("liar"), Span(2, 4))))
    near = {stage.peer: LINK_S for stage in swarm.stages}
    # Four rows a pass: 26 ms each, of which every stage does two in a step.
    cycle = Cycle(route, swarm, near, 0.054, rows=8, num_micro_batches=2)
    assert believe(swarm, learned({}, cycle, 1.0), 1.0) == swarm
    blamed = believe(swarm, learned({}, replace(cycle, time_s=0.2), 1.0), 1.0)
    for stage in blamed.stages[:2]:
        assert 50 > stage.decode_tokens_per_s > 1 / (0.2 / 2)


def test_absurd_claims_do_no_harm() -> None:
    for decode_tokens_per_s in (1e300, 1e-300, 5e-324):
        swarm = snapshot(4, stage_info("x", 0, 4, decode_tokens_per_s=decode_tokens_per_s))
        _, seen = use(swarm, {}, {"x": 0.1}, 0.0)
        found = believe(swarm, seen, 0.0).stages[0]
        assert 0 < found.decode_tokens_per_s <= decode_tokens_per_s


def test_no_more_stages_are_remembered_than_there_is_room_for() -> None:
    seen: Observations = {}
    for number in range(MAX_SEEN + 10):
        swarm = snapshot(2, stage_info(f"p{number}", 0, 2, decode_tokens_per_s=50))
        _, seen = use(swarm, seen, {}, float(number))
    assert len(seen) == MAX_SEEN
    assert PeerId("p0") not in seen
