from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import PeerId
from engine.core.plans import Hop, Route, Span
from engine.planner.micro_batches import HopCost, choose_micro_batches, cycle_s, hop_costs
from engine.planner.routing import find_route
from tests.support.builders import snapshot, stage_info


def ring(num: int, *, base_s=0.0, row_s=0.0, delay_s=0.0, line_row_s=0.0) -> list[HopCost]:
    hops = [HopCost(base_s, row_s, delay_s, line_row_s)] * (num - 1)
    return [*hops, HopCost(base_s, row_s, delay_s, 0.0)]


def simulated_cycle_s(hops: list[HopCost], batch_size: int, number: int, steps: int = 60) -> float:
    """Micro-batches going round stages and lines that serve one of them at a time."""
    rows = -(-batch_size // number)
    servers = [
        duration
        for hop in hops
        for duration in (hop.base_s + rows * hop.row_s, rows * hop.line_row_s)
    ]
    delays = [delay for hop in hops for delay in (0.0, hop.delay_s)]
    free_s = [0.0] * len(servers)
    ready_s = [0.0] * number
    halfway_s = 0.0
    for step in range(2 * steps):
        if step == steps:
            halfway_s = max(ready_s)
        for index in range(number):
            for place, (duration, delay) in enumerate(zip(servers, delays, strict=True)):
                begin_s = max(ready_s[index], free_s[place])
                free_s[place] = begin_s + duration
                ready_s[index] = free_s[place] + delay
    return (max(ready_s) - halfway_s) / steps


cost = st.floats(0.001, 0.1)
hops = st.lists(st.builds(HopCost, cost, st.floats(0, 0.01), cost, st.floats(0, 0.01)), min_size=1)


@given(hops=hops, batch_size=st.integers(1, 64), number=st.integers(1, 8))
def test_cycle_is_what_a_simulated_ring_needs(hops, batch_size, number):
    number = min(number, batch_size)
    hops = hops[:4]
    simulated = simulated_cycle_s(hops, batch_size, number)
    assert cycle_s(hops, batch_size, number) == pytest.approx(simulated, rel=0.02)


def test_one_stage_computes_its_batch_in_one_go():
    assert choose_micro_batches(ring(1, base_s=0.03, row_s=0.001), 32) == 1


def test_where_reading_the_weights_is_all_a_stage_does_there_are_no_more_than_stages():
    assert choose_micro_batches(ring(3, base_s=0.04), 32) <= 3


def test_a_slow_line_is_kept_busy():
    hops = ring(3, base_s=0.005, row_s=0.0003, delay_s=0.1, line_row_s=0.0033)
    number = choose_micro_batches(hops, 32)
    assert number >= 3
    assert cycle_s(hops, 32, number) < 0.8 * cycle_s(hops, 32, 1)


def test_lines_between_stages_count_as_these_have_measured_them():
    both = Route((Hop(PeerId("A"), Span(0, 2)), Hop(PeerId("B"), Span(2, 4))))
    seen = snapshot(4, stage_info("A", 0, 2), stage_info("B", 2, 4))
    seen = replace(seen, link_s={PeerId("A"): {PeerId("B"): 0.2}})
    there, back = hop_costs(both, seen, {PeerId("A"): 0.01, PeerId("B"): 0.01}, 64)
    assert (there.delay_s, back.delay_s) == (0.2, 0.2)
    assert hop_costs(both, snapshot(4), {PeerId("A"): 0.01}, 64)[1].delay_s == 0.01


def test_a_single_sequence_is_not_cut():
    assert choose_micro_batches(ring(3, base_s=0.01, delay_s=0.1), 1) == 1


def test_batch_is_cut_also_where_no_stage_has_measured_itself_yet():
    seen = snapshot(30, stage_info("a", 0, 15), stage_info("b", 15, 30))
    near = dict.fromkeys((stage.peer for stage in seen.stages), 0.001)
    costs = hop_costs(find_route(seen, link_s=near), seen, near, row_bytes=2304)
    assert choose_micro_batches(costs, 16) == 2
