from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from engine.core.errors import PlanInfeasible
from engine.core.ids import PeerId
from engine.core.plans import Plan, Span
from engine.core.profiles import ModelSize, Objective
from engine.core.snapshot import StageInfo, StageState
from engine.planner.announced import announced, as_intended, block_times_of, profile, summary
from engine.planner.distances import RELAY_S, UNKNOWN_LINK_S
from engine.planner.routing import UNKNOWN_BLOCK_S
from engine.planner.search import plan
from tests.support.builders import snapshot, stage_info

A, B, C, D = (PeerId(name) for name in "ABCD")
SIZE = ModelSize(
    num_blocks=30,
    hidden_size=576,
    element_bytes=4,
    block_bytes=1_000,
    embedding_bytes=2_000,
    head_bytes=4_000,
    kv_bytes_per_token=10,
)


def test_time_of_a_pass_is_what_was_announced_of_its_blocks() -> None:
    made = profile(stage_info("A", 0, 10, block_s=0.003, block_row_s=0.001), SIZE)
    assert made.block.mlp.of(1) == pytest.approx(0.004)
    assert made.block.mlp.of(5) == pytest.approx(0.008)
    assert made.head.of(1) == pytest.approx(4 * 0.004)  # it weighs as much as four blocks


def test_measured_machine_says_of_itself_what_its_profile_says() -> None:
    made = profile(stage_info("A", 0, 10, block_s=0.003, block_row_s=0.001), SIZE)
    assert summary(made, 10) == pytest.approx((0.003, 0.001))
    loaded = replace(made, pass_overhead_s=0.01)
    assert summary(loaded, 10) == pytest.approx((0.004, 0.001))


def test_last_stage_is_not_thought_slow_for_its_head() -> None:
    middle = block_times_of(0.010, 0.001, Span(10, 20), SIZE)
    last = block_times_of(0.014, 0.0014, Span(20, 30), SIZE)
    assert last == pytest.approx(middle)


def test_node_takes_as_many_blocks_as_it_says_whatever_room_the_plan_promises() -> None:
    asked = Objective(batch_size=8, context_tokens=2048)
    half = stage_info("A", 0, 10, max_blocks=15)

    def planned(*stages: StageInfo) -> Plan:
        return plan(*announced(snapshot(30, *stages), SIZE, 8 * 2048), SIZE, asked)

    found = planned(half, stage_info("B", 0, 10, max_blocks=15))
    assert [len(stage.span) for stage in found.stages] == [15, 15]
    assert planned(stage_info("A", 0, 10, max_blocks=30)).stages[0].span == Span(0, 30)
    with pytest.raises(PlanInfeasible):
        planned(half, stage_info("B", 0, 10, max_blocks=14))


def test_node_that_says_little_or_lies_grossly_gets_numbers_to_reckon_with() -> None:
    silent = profile(stage_info("A", 0, 10), SIZE)
    assert silent.block.mlp.of(1) == UNKNOWN_BLOCK_S
    assert silent.memory_bytes >= 10 * SIZE.block_bytes
    assert silent.uplink_bytes_per_s == inf
    liar = profile(stage_info("A", 0, 10, block_s=1e-300), SIZE)
    assert liar.block.mlp.of(1) == pytest.approx(1e-6)
    choked = snapshot(30, *(stage_info(n, 0, 15, uplink_bytes_per_s=5e-324) for n in "AB"))
    with pytest.raises(PlanInfeasible) as refused:
        plan(*announced(choked, SIZE, 8 * 2048), SIZE, Objective(batch_size=8))
    assert refused.value.constraint == "lines"


def test_lines_are_as_the_sender_measured_them_else_the_receiver_else_assumed() -> None:
    circuit = ("/p2p-circuit",)
    stages = [stage_info(name, 0, 10) for name in "DCBA"]
    stages[0] = replace(stages[0], addresses=circuit)
    stages[1] = replace(stages[1], addresses=circuit)
    swarm = replace(snapshot(30, *stages), link_s={A: {B: 0.01, C: 0.02}, B: {A: 0.03}})
    profiles, network = announced(swarm, SIZE)
    assert network.peers == tuple(made.peer for made in profiles) == (A, B, C, D)
    assert network.delay_s[0] == (0.0, 0.01, 0.02, UNKNOWN_LINK_S)
    assert network.delay_s[1][0] == 0.03
    assert network.delay_s[2][0] == 0.02
    assert network.delay_s[2][3] == UNKNOWN_LINK_S + RELAY_S


def test_stages_that_leave_are_no_part_of_a_plan_and_those_that_join_are() -> None:
    swarm = snapshot(
        30,
        stage_info("A", 0, 10, state=StageState.DRAINING),
        stage_info("B", 0, 10, state=StageState.JOINING),
        stage_info("C", 0, 10),
    )
    profiles, _ = announced(swarm, SIZE)
    assert [made.peer for made in profiles] == [B, C]


def test_stage_that_is_about_to_move_is_reckoned_with_where_it_goes() -> None:
    swarm = as_intended(snapshot(30, stage_info("A", 0, 10, next_span=Span(20, 30))))
    (moved,) = swarm.stages
    assert (moved.span, moved.state, moved.next_span) == (Span(20, 30), StageState.JOINING, None)
