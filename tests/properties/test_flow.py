"""Whatever each stage has and lacks, the planned flow gives every one exactly what it needs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.client.flow import HopFlow, HopState, plan_flow


@st.composite
def states(draw: st.DrawFn) -> HopState:
    position = draw(st.integers(0, 12))
    return HopState(position, draw(st.integers(0, position)))


def run(num_ids: int, hops: list[HopState], flows: tuple[HopFlow, ...]) -> list[list[int]]:
    """Play the flow token by token; gives the positions that each stage computed."""
    computed = []
    arriving = list(range(flows[0].compute_from, num_ids))  # what the client sends
    for state, flow in zip(hops, flows, strict=True):
        held = state.position  # inputs of [0, held) are in its cache
        sent = list(range(flow.send_from, flow.replay_until))
        assert all(state.kept_from <= position < state.position for position in sent)
        for position in arriving:
            assert position <= held, "a gap"
            held = position + 1
            if position >= flow.send_from:
                sent.append(position)
        assert held == num_ids
        computed.append(arriving)
        arriving = sent
    return computed


@given(st.integers(1, 12), st.lists(states(), min_size=1, max_size=5))
def test_every_stage_gets_what_it_lacks_in_order_and_without_a_gap(
    num_ids: int, hops: list[HopState]
) -> None:
    for arrived in run(num_ids, hops, plan_flow(num_ids, hops)):
        assert arrived == list(range(arrived[0], num_ids))


@given(st.integers(1, 8), st.lists(states(), min_size=1, max_size=4))
def test_no_stage_computes_a_token_that_it_could_have_been_spared(
    num_ids: int, hops: list[HopState]
) -> None:
    flows = plan_flow(num_ids, hops)
    for at, (state, flow) in enumerate(zip(hops, flows, strict=True)):
        own = min(state.position, num_ids - 1)
        if flow.compute_from < own:  # only for what a later stage lacks and we have not kept
            needed = flows[at + 1].compute_from
            assert flow.compute_from == needed < state.kept_from
        else:
            assert flow.compute_from == own


def test_spare_in_the_middle_is_fed_from_the_record_and_nobody_else_computes_again() -> None:
    flows = plan_flow(100, [HopState(100, 0), HopState(), HopState(99, 99)])
    assert flows == (HopFlow(99, 0, 99), HopFlow(0, 99, 99), HopFlow(99, 99, 99))


def test_dropped_record_lets_the_stage_before_compute_again_from_the_one_before_that() -> None:
    flows = plan_flow(100, [HopState(100, 0), HopState(100, 60), HopState()])
    assert flows == (HopFlow(99, 0, 99), HopFlow(0, 0, 0), HopFlow(0, 99, 99))


def test_lost_first_stage_costs_the_others_nothing() -> None:
    flows = plan_flow(50, [HopState(), HopState(50, 0), HopState(50, 50)])
    assert flows == (HopFlow(0, 49, 49), HopFlow(49, 49, 49), HopFlow(49, 49, 49))
