from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from engine.core.errors import PlanInfeasible
from engine.core.ids import PeerId
from engine.core.plans import Plan, PlannedStage, Span
from engine.core.profiles import (
    Calibration,
    Drafting,
    Goal,
    NetworkMatrix,
    NodeProfile,
    Objective,
)
from engine.planner.costs import Work
from engine.planner.fleet import Fleet
from engine.planner.improve import improved
from engine.planner.order import Subsets, solve
from engine.planner.partition import best, value_ns
from engine.planner.search import plan, predict
from engine.planner.tables import question
from tests.support.builders import model_size, network_matrix, node_profile

ONE_ROW = Objective(Goal.LATENCY, context_tokens=256)
ROOM_FOR_SOME = 100_000_000
"""Of ten blocks, with one row's cache: one machine alone is too small."""
ROOM_FOR_HALF = 150_000_000
"""The same with a batch's cache."""
BATCH = Objective(batch_size=32, context_tokens=256)


def spans(found: Plan) -> dict[str, tuple[int, int]]:
    return {stage.peer: (stage.span.start, stage.span.end) for stage in found.stages}


def test_faster_machine_gets_more_blocks():
    slow = node_profile("slow", mlp=(0.006, 0.0006), prefill_row_s=0.0003)
    nodes = [node_profile("fast"), slow]
    found = plan(nodes, network_matrix(["fast", "slow"], delay_s=0.001), model_size(16), BATCH)
    lengths = {stage.peer: len(stage.span) for stage in found.stages}
    assert lengths["fast"] > 2 * lengths["slow"] > 0


def test_machine_that_costs_more_than_it_gives_is_left_out():
    nodes = [node_profile("near"), node_profile("far")]
    found = plan(nodes, network_matrix(["near", "far"], delay_s=0.3), model_size(), ONE_ROW)
    assert spans(found) == {"far": (0, 8)}  # equal machines: the lower id
    assert found.left_out == ("near",)


def test_machine_that_the_model_needs_is_used_however_slow():
    nodes = [
        node_profile("small", memory_bytes=ROOM_FOR_SOME),
        node_profile("slow", mlp=(0.1, 0.01), memory_bytes=ROOM_FOR_SOME),
    ]
    found = plan(nodes, network_matrix(["small", "slow"]), model_size(10), ONE_ROW)
    assert not found.left_out


def test_lines_that_differ_by_direction_decide_the_order():
    nodes = [node_profile(peer, memory_bytes=ROOM_FOR_HALF) for peer in "ab"]
    fast, slow = 1e8, 1e5
    lines = NetworkMatrix(
        (PeerId("a"), PeerId("b")), ((0.0, 0.01), (0.01, 0.0)), ((fast, slow), (fast, fast))
    )
    found = plan(nodes, lines, model_size(10), BATCH)
    assert [stage.peer for stage in found.stages] == ["b", "a"]


def test_cache_goes_to_ram_only_as_far_as_it_must():
    nodes = [
        node_profile("a", memory_bytes=200_000_000, ram_attention=(0.0, 1e-7), ram_bytes=10**10)
    ]
    lines, asked = network_matrix(["a"]), replace(BATCH, prompt_tokens=0)
    assert plan(nodes, lines, model_size(), asked).stages[0].kv_offload_ratio == 0
    found = plan(nodes, lines, model_size(), replace(asked, context_tokens=1024))
    in_memory = 32 * 1024 * 8 * 1024 * (1 - found.stages[0].kv_offload_ratio)
    room = 200_000_000 - 8 * 10**7 - 10**7 - 512 * 1024 * 2 * 16
    assert 0 <= room - in_memory < 32 * 8 * 1024  # less than one more token of each row


def test_share_in_ram_costs_nothing_where_the_blocks_compute_in_ram():
    nodes, lines = [node_profile("cpu")], network_matrix(["cpu"])

    def rate(kv_offload_ratio: float) -> float:
        stages = [PlannedStage(PeerId("cpu"), Span(0, 8), kv_offload_ratio)]
        return predict(nodes, lines, model_size(), stages, BATCH).tokens_per_s

    assert rate(0.5) == rate(0.0)


def test_slow_line_is_encoded_and_fast_one_is_not():
    nodes = [
        node_profile(
            peer, memory_bytes=ROOM_FOR_HALF, encode_bytes_per_s=5e8, decode_bytes_per_s=5e8
        )
        for peer in "ab"
    ]
    asked = replace(BATCH, codec_ratio=0.67)
    slow = network_matrix("ab", bytes_per_s=2e6)
    fast = network_matrix("ab", bytes_per_s=1e9)
    assert plan(nodes, slow, model_size(10), asked).codec
    assert not plan(nodes, fast, model_size(10), asked).codec


def test_batch_is_cut_where_lines_are_slow_and_not_where_overhead_is_all():
    nodes = [
        node_profile(peer, mlp=(0.0, 0.0005), pass_overhead_s=0.0, memory_bytes=ROOM_FOR_HALF)
        for peer in "ab"
    ]
    lines = network_matrix("ab", bytes_per_s=5e6)
    assert plan(nodes, lines, model_size(10), BATCH).num_microbatches > 1
    costly = Calibration(micro_batch_overhead_s=1.0)
    assert plan(nodes, lines, model_size(10), BATCH, costly).num_microbatches == 1


def test_batch_grows_until_memory_is_full():
    nodes = [node_profile("a", memory_bytes=400_000_000)]
    asked = Objective(context_tokens=1024)
    found = plan(nodes, network_matrix(["a"]), model_size(), asked)
    assert found.batch_size == 32
    more = [node_profile("a", memory_bytes=800_000_000)]
    assert plan(more, network_matrix(["a"]), model_size(), asked).batch_size == 64


def test_what_binds_is_named():
    nodes = [node_profile(peer, memory_bytes=ROOM_FOR_HALF) for peer in "ab"]
    asked = replace(BATCH, num_microbatches=8, prompt_tokens=0)
    by_line = plan(nodes, network_matrix("ab", bytes_per_s=2e5), model_size(10), asked)
    assert by_line.bottleneck == "the line from a to b"
    fast = network_matrix("ab", delay_s=0.0)
    assert plan(nodes, fast, model_size(10), asked).bottleneck.startswith("the compute of ")
    far = plan(nodes, network_matrix("ab", delay_s=1.0), model_size(10), asked)
    assert far.bottleneck.startswith("the way round, most of all the line from ")


def test_every_number_of_a_plan_is_explained():
    nodes = [node_profile(peer, memory_bytes=ROOM_FOR_HALF) for peer in "abc"]
    found = plan(nodes, network_matrix("abc"), model_size(10), BATCH)
    values = {term.what: term.value for term in found.terms}
    passes = sum(values[f"{stage.peer}: pass"] for stage in found.stages)
    following = [*found.stages[1:], found.stages[0]]
    lines = sum(
        values[f"{stage.peer} → {after.peer}"]
        for stage, after in zip(found.stages, following, strict=True)
    )
    assert values["way round"] == pytest.approx(passes + lines)
    assert values["step"] == pytest.approx(max(values["way round"], values["busiest part"]))
    assert values["rate"] == pytest.approx(found.tokens_per_s)
    assert {f"{peer}: left out" for peer in found.left_out} <= values.keys()


def test_prediction_of_a_plans_own_stages_is_the_plan():
    nodes = [node_profile(peer, memory_bytes=ROOM_FOR_HALF) for peer in "ab"]
    found = plan(nodes, network_matrix("ab"), model_size(10), BATCH)
    asked = replace(BATCH, num_microbatches=found.num_microbatches)
    assert predict(nodes, network_matrix("ab"), model_size(10), found.stages, asked) == found


class TestDrafting:
    nodes = tuple(node_profile(peer, memory_bytes=ROOM_FOR_SOME) for peer in "ab")
    drafting = Drafting(0.01, ((4, 2.0), (8, 2.5)), ((0.3, 0.5, 0.96),))

    def plans(self, lines: NetworkMatrix) -> tuple[Plan, Plan]:
        model = model_size(10)
        asked = replace(ONE_ROW, drafting=self.drafting)
        return plan(self.nodes, lines, model, ONE_ROW), plan(self.nodes, lines, model, asked)

    def test_far_machines_draft(self):
        plain, drafted = self.plans(network_matrix("ab", delay_s=0.2))
        assert drafted.draft_tree_size
        assert drafted.tokens_per_s > 1.5 * plain.tokens_per_s

    def test_slow_lines_prune_or_do_without(self):
        plain, drafted = self.plans(network_matrix("ab", delay_s=0.0, bytes_per_s=2e4))
        assert drafted == plain

    def test_threshold_that_sends_less_is_taken_where_it_pays(self):
        _, drafted = self.plans(network_matrix("ab", delay_s=0.2, bytes_per_s=1e5))
        assert drafted.prune_threshold == 0.3


def test_frugal_machine_is_preferred_when_energy_counts():
    nodes = [
        node_profile("fast", power_w=400.0),
        node_profile("frugal", mlp=(0.004, 0.0004), prefill_row_s=0.0002, power_w=50.0),
    ]
    lines = network_matrix(["fast", "frugal"])
    asked = replace(BATCH, goal=Goal.ENERGY)
    assert spans(plan(nodes, lines, model_size(), asked)) == {"frugal": (0, 8)}
    with pytest.raises(PlanInfeasible, match="euro_per_hour"):
        plan(nodes, lines, model_size(), replace(asked, goal=Goal.COST))


class TestInfeasible:
    def refusal(self, nodes: list[NodeProfile], objective=BATCH, **lines) -> PlanInfeasible:
        with pytest.raises(PlanInfeasible) as refused:
            plan(nodes, network_matrix([n.peer for n in nodes], **lines), model_size(), objective)
        return refused.value

    def test_no_machine(self):
        assert self.refusal([]).constraint == "nodes"

    def test_too_little_memory_for_the_weights_says_how_much_is_missing(self):
        few = [node_profile(peer, memory_bytes=30_000_000) for peer in "ab"]
        refused = self.refusal(few)
        assert refused.constraint == "memory"
        missing = float(refused.hint.partition("at least ")[2].partition(" MB")[0]) * 1e6
        helped = [
            replace(node, memory_bytes=int(node.memory_bytes + share * missing))
            for share in (0.98, 1.0)
            for node in few
        ]
        assert self.refusal(helped[:2])
        assert plan(helped[2:], network_matrix("ab"), model_size(), BATCH)

    def test_too_long_a_context_says_which_one_fits(self):
        nodes = [node_profile("a", memory_bytes=200_000_000)]
        refused = self.refusal(nodes, replace(BATCH, context_tokens=100_000))
        assert refused.constraint == "cache"
        fits = int(refused.hint.partition("at most ")[2].partition(" tokens")[0])
        asked = replace(BATCH, context_tokens=fits)
        assert plan(nodes, network_matrix("a"), model_size(), asked)
        assert self.refusal(nodes, replace(BATCH, context_tokens=fits + 1))

    def test_context_that_does_not_hold_the_request_is_not_proposed(self):
        nodes = [node_profile("a", memory_bytes=150_000_000)]
        asked = replace(BATCH, prompt_tokens=90_000, context_tokens=100_000)
        hint = self.refusal(nodes, asked).hint
        assert "context" not in hint
        assert "batch of at most" in hint or "more memory" in hint

    def test_what_is_too_slow_is_not_taken_for_too_little_memory(self):
        halves = [node_profile(peer, memory_bytes=ROOM_FOR_HALF) for peer in "ab"]
        slow = [replace(node, uplink_bytes_per_s=1.0) for node in halves]
        assert self.refusal(slow).constraint == "lines"
        assert self.refusal([node_profile("a", mlp=(1000.0, 0.0))]).constraint == "compute"

    def test_machines_that_cannot_reach_each_other(self):
        nodes = [node_profile(peer, memory_bytes=120_000_000) for peer in "ab"]
        lines = network_matrix("ab", delay_s=math.inf)
        lines = replace(lines, delay_s=((0.0, 0.1), (math.inf, 0.0)))
        with pytest.raises(PlanInfeasible, match="b cannot reach a") as refused:
            plan(nodes, lines, model_size(), BATCH)
        assert refused.value.constraint == "reachability"


def random_swarm(num: int, seed: int) -> tuple[list[NodeProfile], NetworkMatrix]:
    chance = random.Random(seed)
    nodes = [
        node_profile(
            f"{index:03}",
            mlp=(0.002 * (pace := chance.uniform(0.5, 3)), 2e-5 * pace),
            memory_bytes=int(chance.uniform(0.06, 0.3) * 10**9),
            uplink_bytes_per_s=chance.uniform(2e6, 6e7),
        )
        for index in range(num)
    ]
    delays = tuple(
        tuple(0.0 if a == b else chance.uniform(0.005, 0.1) for b in range(num)) for a in range(num)
    )
    peers = tuple(node.peer for node in nodes)
    return nodes, NetworkMatrix(peers, delays, ((math.inf,) * num,) * num)


def test_improving_an_order_comes_within_a_few_percent_of_the_best():
    for seed in range(10):
        nodes, lines = random_swarm(8, seed)
        asked = question(Fleet.of(nodes, lines), model_size(30), Work.of(BATCH, 32, 4))
        exact = best(asked, Subsets(asked))
        found = improved(asked, starts=6)
        assert value_ns(asked, exact) <= value_ns(asked, found) < 1.05 * value_ns(asked, exact)


def test_many_machines_are_planned_for_within_their_memory():
    nodes, lines = random_swarm(120, 1)
    found = plan(nodes, lines, model_size(60), BATCH)
    assert [stage.span.start for stage in found.stages[1:]] == [
        stage.span.end for stage in found.stages[:-1]
    ]
    assert found.stages[0].span.start == 0
    assert found.stages[-1].span.end == 60
    memory = {node.peer: node.memory_bytes for node in nodes}
    taken = 10**7 + 32 * 256 * 1024  # a block and its cache
    assert all(len(stage.span) * taken < memory[stage.peer] for stage in found.stages)
    alone = solve(
        question(Fleet.of(nodes, lines).of_places(range(8)), model_size(60), Work.of(BATCH, 32, 1))
    )
    assert alone is None or 32e9 / alone.way_ns <= found.tokens_per_s


def test_duplicate_machine_is_refused():
    nodes = [node_profile("a"), node_profile("a")]
    with pytest.raises(ValueError, match="a is listed twice"):
        plan(nodes, network_matrix("a"), model_size(), BATCH)
