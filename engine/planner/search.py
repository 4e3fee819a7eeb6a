"""The best plan: stages and their order, batch, micro-batches, cache tiers, codec and drafting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.core.errors import PlanInfeasible
from engine.core.plans import Plan, PlannedStage, Span
from engine.core.profiles import (
    Calibration,
    Goal,
    ModelSize,
    NetworkMatrix,
    NodeProfile,
    Objective,
)
from engine.planner.account import Account, account
from engine.planner.costs import Work, ram_tokens
from engine.planner.fleet import Fleet
from engine.planner.flow import UNCALIBRATED, Form
from engine.planner.micro_batches import MAX_MICRO_BATCHES
from engine.planner.order import solve
from engine.planner.partition import Partition, value_ns
from engine.planner.tables import FIRST, LAST, question, role_bytes


def plan(
    profiles: Sequence[NodeProfile],
    network: NetworkMatrix,
    model: ModelSize,
    objective: Objective,
    calibration: Calibration = UNCALIBRATED,
    *,
    form: Form = Form.RING,
) -> Plan:
    """Find the best pipeline of these machines.

    A pure function: equal values give equal plans, in whatever order the machines are listed.

    Args:
        profiles: The machines.
        network: The lines between them.
        model: What to run.
        objective: What to be best at, and what for.
        calibration: What a fit to measurements adds.
        form: Of the pipeline; the papers' one is there for comparison.

    Raises:
        PlanInfeasible: No pipeline fits; says what binds and what would help.
        ValueError: Machines and network do not belong together.
    """
    fleet = Fleet.of(profiles, network)
    found: tuple[float, Work, Partition] | None = None
    for batch_size in _batch_sizes(objective):
        for number in _micro_batches(objective, batch_size):
            work = Work.of(objective, batch_size, number)
            asked = question(
                fleet,
                model,
                work,
                calibration,
                form=form,
                is_answer_alone=objective.goal is Goal.LATENCY,
            )
            partition = solve(asked)
            if partition is None:
                continue
            rate = batch_size / value_ns(asked, partition)
            if found is None or rate > found[0]:
                found = rate, work, partition
    if found is None:
        raise PlanInfeasible("Nothing fits.", constraint="memory", hint="More memory would help.")
    _, work, partition = found
    stages = planned_stages(fleet, model, partition, work)
    return _plan(fleet, model, stages, work, objective, calibration, form)


def predict(
    profiles: Sequence[NodeProfile],
    network: NetworkMatrix,
    model: ModelSize,
    stages: Sequence[PlannedStage],
    objective: Objective,
    calibration: Calibration = UNCALIBRATED,
    *,
    form: Form = Form.RING,
) -> Plan:
    """What a given pipeline would do, whether it is the best or fits or not.

    Args:
        profiles: The machines.
        network: The lines between them.
        model: What to run.
        stages: All its blocks, in order, with their α.
        objective: B and, if not 1, M; what the answers are like.
        calibration: What a fit to measurements adds.
        form: Of the pipeline.
    """
    fleet = Fleet.of(profiles, network)
    work = Work.of(objective, max(1, objective.batch_size), max(1, objective.num_microbatches))
    return _plan(fleet, model, tuple(stages), work, objective, calibration, form)


def _plan(
    fleet: Fleet,
    model: ModelSize,
    stages: tuple[PlannedStage, ...],
    work: Work,
    objective: Objective,
    calibration: Calibration,
    form: Form,
) -> Plan:
    found = account(fleet, model, stages, work, objective, calibration, form=form)
    used = {stage.peer for stage in stages}
    return Plan(
        stages,
        work.batch_size,
        work.num_microbatches,
        any(found.is_encoded),
        work.tree_size,
        0.0,
        found.step_s,
        found.tokens_per_s,
        found.prefill_s,
        bottleneck(found),
        tuple(peer for peer in fleet.peers if peer not in used),
    )


def planned_stages(
    fleet: Fleet, model: ModelSize, partition: Partition, work: Work
) -> tuple[PlannedStage, ...]:
    """Spans, and what follows for the caches."""
    out, start = [], 0
    fixed = role_bytes(model, work)
    last = len(partition.shares) - 1
    for index, share in enumerate(partition.shares):
        role = FIRST * (index == 0) | LAST * (index == last)
        moved = ram_tokens(
            fleet.profiles[share.place], model, work, np.array([share.length]), fixed[role]
        )
        span = Span(start, start + share.length)
        alpha = float(moved[0]) / max(1, work.capacity_tokens)
        out.append(PlannedStage(fleet.peers[share.place], span, alpha))
        start = span.end
    return tuple(out)


def bottleneck(found: Account) -> str:
    """What binds, in words."""
    if found.is_bound_by_way:
        return "the way round"
    index, is_line = found.busiest
    peer = found.stages[index].peer
    if is_line:
        after = found.stages[(index + 1) % len(found.stages)].peer
        return f"the line from {peer} to {after}"
    return f"the compute of {peer}"


def _batch_sizes(objective: Objective) -> list[int]:
    if objective.batch_size:
        return [objective.batch_size]
    if objective.goal is Goal.LATENCY:
        return [1]
    sizes = [1 << power for power in range(objective.max_batch_size.bit_length())]
    return sorted({*sizes, objective.max_batch_size})


def _micro_batches(objective: Objective, batch_size: int) -> list[int]:
    if objective.num_microbatches:
        return [min(objective.num_microbatches, batch_size)]
    if objective.goal is Goal.LATENCY:
        return [1]
    most = min(batch_size, MAX_MICRO_BATCHES)
    return [1 << power for power in range(most.bit_length())]
