"""Everyone finds the same moves, and they are worth making."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState
from engine.planner.coverage import (
    Holder,
    best_rearrangement,
    block_rates,
    move_price,
)
from engine.planner.rebalance import better_places, decide
from tests.support.builders import snapshot, stage_info


@st.composite
def holders(draw, num_blocks):
    out = []
    for index in range(draw(st.integers(1, 7))):
        length = draw(st.integers(1, num_blocks))
        start = draw(st.integers(0, num_blocks - length))
        rate = draw(st.integers(1, 100_000))
        out.append(Holder(PeerId(f"n{index}"), Span(start, start + length), rate, length, rate))
    return out


@st.composite
def swarms(draw):
    """Ten blocks, and nodes that serve, join, move and leave."""
    stages: list[StageInfo] = []
    for index in range(draw(st.integers(1, 9))):
        length = draw(st.integers(1, 10))
        start = draw(st.integers(0, 10 - length))
        intent = draw(st.none() | st.integers(0, 10 - length))
        stages.append(
            stage_info(
                f"n{index}",
                start,
                start + length,
                state=draw(st.sampled_from(StageState)),
                block_s=draw(st.floats(0, 0.1)),
                block_row_s=draw(st.floats(0, 0.01)),
                max_blocks=draw(st.sampled_from([0, length, 10])),
                next_span=None if intent is None else Span(intent, intent + length),
            )
        )
    return snapshot(10, *stages)


@settings(max_examples=150)
@given(swarms(), st.randoms(use_true_random=False))
def test_nodes_with_equal_views_make_equal_plans(swarm, rng: random.Random):
    order = list(swarm.stages)
    rng.shuffle(order)
    other = replace(swarm, stages=tuple(order))
    assert better_places(other) == better_places(swarm)
    for peer in (*(stage.peer for stage in swarm.stages), PeerId("new")):
        assert decide(other, peer, 3) == decide(swarm, peer, 3)


@settings(max_examples=150)
@given(holders(10))
def test_moves_made_in_order_never_slow_the_swarm_and_bring_what_they_promise(nodes):
    found = best_rearrangement(10, nodes)
    if found is None:
        return
    rates = block_rates(10, nodes)
    least = rates.min()
    at = {node.peer: node for node in nodes}
    for step in found.steps:
        node = at[step.peer]
        rates[node.span.start : node.span.end] -= node.rate
        rates[step.span.start : step.span.end] += node.rate_elsewhere
        assert rates.min() >= least
    assert rates.min() == found.after > found.before == least
    assert len({step.peer for step in found.steps}) == len(found.steps)


@settings(max_examples=150)
@given(holders(10))
def test_no_single_move_that_is_worth_its_price_is_missed(nodes):
    rates = block_rates(10, nodes)
    found = best_rearrangement(10, nodes)
    price = move_price(len(nodes))
    gained = 0.0 if found is None else found.after - found.before
    for node in nodes:
        for start in range(10 - node.length + 1):
            after = rates.copy()
            after[node.span.start : node.span.end] -= node.rate
            after[start : start + node.length] += node.rate
            if after.min() > rates.min() * (1 + price) and rates.min() > 0:
                assert gained >= after.min() - rates.min() - 8 * price * rates.mean()
                assert found is not None
