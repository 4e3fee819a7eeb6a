"""What the planner makes of the measured machines: predictions, and placements to compare. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from engine.bench.placements.rivals import PLAN, rival_plan
from engine.bench.report import Run
from engine.bench.request import SwarmBench
from engine.core.errors import ConfigError
from engine.core.model_spec import ModelSpec
from engine.core.plans import Plan, PlannedStage, Span
from engine.core.profiles import ModelSize, Objective
from engine.planner.search import plan, predict
from engine.profiler.nodes_file import NodesFile


def placed(bench: SwarmBench) -> Iterator[SwarmBench]:
    """The measurement of each placement that was asked for.

    Raises:
        ConfigError: A way of placing finds nothing that fits, or cannot plan for these machines.
        PlanInfeasible: The same of our plan.
    """
    nodes = bench.nodes
    assert nodes is not None, "placements need machines"
    objective = _objective(bench, bench.batch_sizes[0], bench.micro_batches[0])
    for name in bench.placements:
        found = _found(name, nodes, objective)
        objective = replace(objective, num_microbatches=found.num_microbatches)
        hosts = {profile.peer: host for host, profile in enumerate(nodes.profiles, start=1)}
        yield replace(
            bench,
            placements=(),
            placement=name,
            stages=len(found.stages),
            spans=tuple(stage.span for stage in found.stages),
            hosts=tuple(hosts[stage.peer] for stage in found.stages),
            micro_batches=(found.num_microbatches,),
        )


def placement_fields(bench: SwarmBench, spans: Sequence[Span], run: Run) -> dict[str, Any]:
    """Where the stages of a run were, and what the planner would have said of it.

    Where Shoal chose the number of micro-batches, it is predicted for as many as there were.

    Args:
        bench: What was asked for.
        spans: Of the stages.
        run: Measured.
    """
    fields: dict[str, Any] = {
        "placement": bench.placement,
        "spans": [(span.start, span.end) for span in spans],
        "hosts": list(bench.stage_hosts),
    }
    nodes = bench.nodes
    if nodes is None:
        return fields
    passes = max((stage.forwards for stage in run.stages), default=1.0)
    number = run.micro_batches or max(1, round(passes))
    found = predict(
        nodes.profiles,
        nodes.network,
        nodes.model,
        [
            PlannedStage(nodes.profiles[host - 1].peer, span, _kv_offload(bench))
            for host, span in zip(bench.stage_hosts, spans, strict=True)
        ],
        _objective(bench, run.batch_size, min(number, run.batch_size)),
        nodes.calibration,
    )
    return fields | {
        "predicted_tokens_per_s": found.tokens_per_s,
        "prediction_error": found.tokens_per_s / run.tokens_per_s - 1,
    }


def check_model(nodes: NodesFile, spec: ModelSpec, element_bytes: int) -> None:
    """See that the machines were described for the model that is measured.

    Raises:
        ConfigError: They were not.
    """
    theirs, ours = nodes.model, ModelSize.of(spec, element_bytes)
    sizes = [(m.num_blocks, m.hidden_size, m.element_bytes) for m in (theirs, ours)]
    if sizes[0] != sizes[1]:
        described, measured = (f"{n} blocks of width {d} in {e} bytes" for n, d, e in sizes)
        raise ConfigError(
            f"The file of --nodes is for a model of {described}, but {spec.name} has {measured}; "
            "name the same model there."
        )


def _found(name: str, nodes: NodesFile, objective: Objective) -> Plan:
    machines = (nodes.profiles, nodes.network, nodes.model)
    if name == PLAN:
        return plan(*machines, objective, nodes.calibration)
    found = rival_plan(name, *machines, objective, nodes.calibration)
    if found is None:
        raise ConfigError(
            f"{name} finds no placement that fits these machines; give them more memory."
        )
    return found


def _objective(bench: SwarmBench, batch_size: int, num_microbatches: int) -> Objective:
    """The file's wish, for the batch, the answers and the codec that are measured."""
    assert bench.nodes is not None, "who predicts has machines"
    wanted = bench.nodes.objective
    is_raw = bench.settings.get("swarm", {}).get("codec") == "raw"
    return replace(
        wanted,
        batch_size=batch_size,
        num_microbatches=num_microbatches,
        prompt_tokens=bench.prompt_tokens,
        new_tokens=bench.new_tokens,
        context_tokens=bench.prompt_tokens + bench.new_tokens,
        codec_ratio=1.0 if is_raw else wanted.codec_ratio,
        counts_prompts=False,  # as the rate that is measured is that of decoding
        drafting=None,
    )


def _kv_offload(bench: SwarmBench) -> float:
    return float(bench.settings.get("client", {}).get("kv_offload", 0.0))
