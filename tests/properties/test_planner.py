"""The planner finds what trying every pipeline finds."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.bench.placements.rivals import rival_plan
from engine.core.errors import PlanInfeasible
from engine.core.ids import PeerId
from engine.core.profiles import (
    BlockTimes,
    Calibration,
    Drafting,
    Goal,
    LinearTime,
    ModelSize,
    NetworkMatrix,
    NodeProfile,
    Objective,
)
from engine.planner.costs import Work
from engine.planner.fleet import Fleet
from engine.planner.flow import Form
from engine.planner.order import solve
from engine.planner.partition import value_ns
from engine.planner.search import plan
from engine.planner.tables import question
from tests.support.brute_force import pipelines, step_s

ROUNDING = 1e-6
"""Solvers count in whole nanoseconds, per block and per line."""

linear = st.builds(LinearTime, st.floats(0, 0.01), st.floats(0, 0.001))
attention = st.builds(LinearTime, st.floats(0, 0.001), st.floats(0, 1e-5))
frames = st.builds(LinearTime, st.floats(0, 0.005), st.floats(0, 1e-8))
rates = st.one_of(st.just(math.inf), st.floats(1e4, 1e8))


@st.composite
def swarms(draw, most=4):
    """A few machines and a small model; memory for a part of it, so that every limit binds somewhere."""
    num = draw(st.integers(1, most))
    num_blocks = draw(st.integers(1, 6))
    model = ModelSize(
        num_blocks,
        draw(st.sampled_from([64, 1024])),
        2,
        block_bytes=10**7,
        embedding_bytes=draw(st.sampled_from([0, 10**7])),
        head_bytes=draw(st.sampled_from([0, 10**7])),
        kv_bytes_per_token=1000,
        ties_ends=draw(st.booleans()),
    )
    profiles = [
        NodeProfile(
            PeerId(f"peer{index}"),
            BlockTimes(
                draw(linear),
                draw(attention),
                draw(st.one_of(st.none(), attention)),
                draw(st.floats(0, 0.001)),
            ),
            draw(linear),
            draw(st.floats(0, 0.01)),
            memory_bytes=draw(st.integers(3 * 10**7, 2 * 10**8)),
            ram_bytes=draw(st.integers(0, 10**8)),
            uplink_bytes_per_s=draw(rates),
            downlink_bytes_per_s=draw(rates),
            encode_bytes_per_s=draw(st.sampled_from([0.0, 1e7, 1e9])),
            decode_bytes_per_s=draw(st.sampled_from([0.0, 1e7, 1e9])),
            power_w=draw(st.floats(1, 500)),
            euro_per_hour=1.0,
            frame=draw(frames),
            frame_shares_cores=draw(st.booleans()),
        )
        for index in range(num)
    ]
    delay = st.one_of(st.floats(0, 0.1), st.just(math.inf))
    matrix = NetworkMatrix(
        tuple(profile.peer for profile in profiles),
        tuple(
            tuple(draw(delay) * (a != b) if a != b else 0.0 for b in range(num)) for a in range(num)
        ),
        tuple(tuple(draw(rates) for _ in range(num)) for _ in range(num)),
    )
    batch_size = draw(st.integers(1, 16))
    objective = Objective(
        draw(st.sampled_from([Goal.THROUGHPUT, Goal.LATENCY])),
        batch_size=batch_size,
        prompt_tokens=draw(st.integers(0, 100)),
        new_tokens=draw(st.integers(1, 100)),
        context_tokens=draw(st.integers(200, 4000)),
        codec_ratio=draw(st.sampled_from([0.5, 1.0])),
    )
    return profiles, matrix, model, objective, draw(st.integers(1, batch_size))


@settings(max_examples=500, deadline=None)
@given(swarm=swarms(), form=st.sampled_from(Form))
def test_order_and_division_are_the_best_of_all(swarm, form):
    profiles, network, model, objective, number = swarm
    calibration = Calibration(0.01, 0.002)
    asked = question(
        Fleet.of(profiles, network),
        model,
        Work.of(objective, objective.batch_size, number),
        calibration,
        form=form,
        is_answer_alone=objective.goal is Goal.LATENCY,
    )
    best = min(
        step_s(pipeline, network, model, objective, number, calibration, form=form)
        for pipeline in pipelines(profiles, model.num_blocks)
    )
    found = solve(asked)
    if found is None:
        assert best == math.inf
    else:
        assert value_ns(asked, found) / 1e9 == pytest.approx(best, rel=ROUNDING, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(swarm=swarms(most=3), goal=st.sampled_from(Goal))
def test_a_whole_plan_is_the_best_of_all_pipelines_and_micro_batches(swarm, goal):
    profiles, network, model, objective, _ = swarm
    objective = replace(objective, goal=goal)
    best = math.inf
    for pipeline in pipelines(profiles, model.num_blocks):
        weight = 1.0
        if goal is Goal.ENERGY:
            weight = sum(node.power_w for node, _ in pipeline)
        elif goal is Goal.COST:
            weight = sum(node.euro_per_hour for node, _ in pipeline)
        numbers = [1] if goal is Goal.LATENCY else [1, 2, 4, 8, 16]
        for number in numbers:
            if number <= objective.batch_size:
                time_s = step_s(pipeline, network, model, objective, number)
                best = min(best, weight * time_s)
    try:
        found = plan(profiles, network, model, objective)
    except PlanInfeasible:
        assert best == math.inf
        return
    chosen = tuple(
        (next(node for node in profiles if node.peer == stage.peer), len(stage.span))
        for stage in found.stages
    )
    weight = 1.0
    if goal is Goal.ENERGY:
        weight = sum(node.power_w for node, _ in chosen)
    elif goal is Goal.COST:
        weight = sum(node.euro_per_hour for node, _ in chosen)
    time_s = step_s(chosen, network, model, objective, found.num_microbatches)
    assert weight * time_s == pytest.approx(best, rel=ROUNDING, abs=1e-6 * weight)


@settings(max_examples=50, deadline=None)
@given(swarm=swarms(), data=st.data())
def test_the_order_in_which_machines_are_listed_decides_nothing(swarm, data):
    profiles, network, model, objective, _ = swarm
    places = data.draw(st.permutations(range(len(profiles))))
    shuffled = NetworkMatrix(
        tuple(network.peers[place] for place in places),
        tuple(tuple(network.delay_s[a][b] for b in places) for a in places),
        tuple(tuple(network.bytes_per_s[a][b] for b in places) for a in places),
    )
    others = [profiles[place] for place in reversed(places)]
    try:
        expected = plan(profiles, network, model, objective)
    except PlanInfeasible as error:
        with pytest.raises(PlanInfeasible, match=re.escape(str(error))):
            plan(others, shuffled, model, objective)
    else:
        assert plan(others, shuffled, model, objective) == expected


trees = st.lists(
    st.tuples(st.integers(1, 8), st.floats(1, 5)), min_size=1, max_size=3, unique_by=lambda x: x[0]
)
thresholds = st.lists(
    st.tuples(st.floats(0.1, 0.9), st.floats(0, 1), st.floats(0.5, 1)), max_size=2
)


@settings(max_examples=60, deadline=None)
@given(swarm=swarms(), draft_s=st.floats(0, 0.1), trees=trees, thresholds=thresholds)
def test_drafting_never_makes_anybody_wait_longer(swarm, draft_s, trees, thresholds):
    profiles, network, model, objective, _ = swarm
    drafting = Drafting(draft_s, tuple(sorted(trees)), tuple(thresholds))
    try:
        plain = plan(profiles, network, model, objective)
    except PlanInfeasible:
        return
    drafted = plan(profiles, network, model, replace(objective, drafting=drafting))
    assert drafted.tokens_per_s >= plain.tokens_per_s
    assert drafted.batch_size == plain.batch_size


@settings(max_examples=150, deadline=None)
@given(swarm=swarms(), counts_prompts=st.booleans(), data=st.data())
def test_no_other_way_of_placing_is_predicted_to_be_faster(swarm, counts_prompts, data):
    profiles, network, model, objective, number = swarm
    number = number if objective.goal is Goal.THROUGHPUT else 1
    objective = replace(objective, num_microbatches=number, counts_prompts=counts_prompts)
    rival = rival_plan(
        data.draw(st.sampled_from(["even", "petals", "brute"])), profiles, network, model, objective
    )
    if rival is None:
        return
    ours = plan(profiles, network, model, objective)
    assert ours.sustained_tokens_per_s >= rival.sustained_tokens_per_s * (1 - ROUNDING)
    if not counts_prompts:
        assert ours.tokens_per_s >= rival.tokens_per_s * (1 - ROUNDING)
