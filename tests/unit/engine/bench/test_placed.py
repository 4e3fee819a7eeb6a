"""What `shoal bench swarm` makes of a file of machines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.bench.placed import check_model, placed, placement_fields
from engine.bench.report import local_run
from engine.bench.request import SwarmBench
from engine.config import ModelConfig
from engine.core.errors import ConfigError
from engine.core.ids import PeerId
from engine.core.plans import PlannedStage, Span
from engine.core.profiles import Calibration, Objective
from engine.models.known import starter_spec
from engine.planner.search import predict
from engine.profiler.nodes_file import NodesFile
from tests.support.builders import model_size, network_matrix, node_profile
from tests.unit.engine.bench.test_report import swarm

FAST, SLOW = node_profile("zoe"), node_profile("ann", mlp=(0.004, 0.0004))
"""Host 1 and host 2; the planner sorts them by name."""


def nodes(*profiles) -> NodesFile:
    peers = [profile.peer for profile in profiles]
    return NodesFile(
        model_size(10), profiles, network_matrix(peers), Objective(), Calibration(), None
    )


def bench(**fields) -> SwarmBench:
    usual = {
        "model": "starter",
        "stages": 2,
        "batch_sizes": (32,),
        "micro_batches": (2,),
        "prompt_tokens": 32,
        "new_tokens": 64,
        "model_config": ModelConfig(),
        "nodes": nodes(FAST, SLOW),
    }
    return SwarmBench(**{**usual, **fields})


def test_every_placement_is_measured_at_the_hosts_that_it_chose():
    ours, even = placed(bench(placements=("plan", "even")))
    assert [one.placement for one in (ours, even)] == ["plan", "even"]
    at = dict(zip(ours.hosts, ours.spans, strict=True))
    assert len(at[1]) > len(at[2]) > 0
    assert {len(span) for span in even.spans} == {5}
    assert ours.micro_batches == even.micro_batches == (2,)
    for one in (ours, even):
        one.check()
        assert one.client_host == 3


def test_rivals_get_the_micro_batches_of_our_plan():
    ours, petals = placed(bench(placements=("plan", "petals"), micro_batches=(0,)))
    assert ours.micro_batches == petals.micro_batches > (0,)


def test_machine_that_is_left_out_has_no_stage_but_keeps_its_host():
    far = node_profile("far", mlp=(10.0, 1.0))
    (one,) = placed(bench(placements=("plan",), nodes=nodes(far, FAST, SLOW)))
    assert sorted(one.hosts) == [2, 3]
    assert one.stages == 2
    assert one.client_host == 4


def test_placement_that_does_not_fit_is_said():
    tiny = [replace(profile, memory_bytes=30_000_000) for profile in (FAST, SLOW)]
    with pytest.raises(ConfigError, match="even finds no placement that fits"):
        list(placed(bench(placements=("even",), nodes=nodes(*tiny))))


def test_run_is_predicted_by_the_planner_for_the_stages_and_micro_batches_that_it_had():
    asked = bench(spans=(Span(0, 7), Span(7, 10)), settings={"client": {"kv_offload": 0.5}})
    run = local_run("shoal", [swarm()]).model_copy(update={"micro_batches": 2})
    fields = placement_fields(asked, asked.spans, run)
    stages = [
        PlannedStage(PeerId("zoe"), Span(0, 7), 0.5),
        PlannedStage(PeerId("ann"), Span(7, 10), 0.5),
    ]
    wanted = Objective(
        batch_size=2, num_microbatches=2, prompt_tokens=32, new_tokens=64, context_tokens=96
    )
    known = asked.nodes
    expected = predict(known.profiles, known.network, known.model, stages, wanted).tokens_per_s
    assert fields["predicted_tokens_per_s"] == expected
    assert fields["prediction_error"] == pytest.approx(expected / run.tokens_per_s - 1)
    assert fields["spans"] == [(0, 7), (7, 10)]
    assert fields["hosts"] == [1, 2]


def test_raw_hidden_states_are_predicted_without_the_codec():
    slow = network_matrix(["zoe", "ann"], bytes_per_s=1e4)
    coded = [
        replace(p, encode_bytes_per_s=1e9, decode_bytes_per_s=1e9, memory_bytes=150_000_000)
        for p in (FAST, SLOW)
    ]
    known = replace(nodes(*coded), network=slow, objective=Objective(codec_ratio=0.5))
    run = local_run("shoal", [swarm()])
    spans = (Span(0, 5), Span(5, 10))
    auto, raw = (
        placement_fields(bench(nodes=known, settings=settings), spans, run)
        for settings in ({}, {"swarm": {"codec": "raw"}})
    )
    assert auto["predicted_tokens_per_s"] > 1.5 * raw["predicted_tokens_per_s"]


def test_without_machines_nothing_is_predicted():
    asked = bench(nodes=None)
    fields = placement_fields(asked, (Span(0, 5), Span(5, 10)), local_run("shoal", [swarm()]))
    assert fields.keys() == {"placement", "spans", "hosts"}


def test_file_for_another_model_is_refused():
    with pytest.raises(ConfigError, match="for a model of 10 blocks of width 1024"):
        check_model(nodes(FAST, SLOW), starter_spec(), 4)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"stages": 3}, "has 2 machines, but there are 3 stages"),
        ({"nodes": None, "placements": ("plan",)}, "--placements needs --nodes"),
        ({"placements": ("plan",), "spans": (Span(0, 4), Span(4, 10))}, "leave out --spans"),
        ({"placements": ("plan",), "batch_sizes": (1, 2)}, "leave out --spans and lists"),
        ({"kills": 1}, "predicts plain measurements"),
        ({"against": "local"}, "predicts plain measurements"),
    ],
)
def test_what_does_not_fit_the_machines_is_said(fields, problem):
    with pytest.raises(ConfigError, match=problem):
        bench(**fields).check()
