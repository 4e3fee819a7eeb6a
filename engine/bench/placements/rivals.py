"""The other ways by name, from machines to a plan: `shoal plan --against`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.bench.placements import milp, simple
from engine.core.errors import ConfigError
from engine.core.plans import Plan
from engine.core.profiles import (
    Calibration,
    Goal,
    ModelSize,
    NetworkMatrix,
    NodeProfile,
    Objective,
)
from engine.planner.account import planned_stages
from engine.planner.costs import Work
from engine.planner.fleet import Fleet
from engine.planner.flow import UNCALIBRATED
from engine.planner.partition import Partition
from engine.planner.search import predict
from engine.planner.tables import Question, question

PLAN: Final = "plan"
"""Our own, beside them."""
RIVALS: Final[Mapping[str, Callable[[Question], Partition | None]]] = {
    "petals": simple.petals,
    "even": simple.even_split,
    "milp": lambda asked: milp.solve(asked).partition,
    "brute": simple.brute_force,
}


def rival_plan(
    name: str,
    profiles: Sequence[NodeProfile],
    network: NetworkMatrix,
    model: ModelSize,
    objective: Objective,
    calibration: Calibration = UNCALIBRATED,
) -> Plan | None:
    """What another way of placing would make of the same machines; None: nothing that fits.

    Args:
        name: One of `RIVALS`.
        profiles: The machines.
        network: The lines between them.
        model: What to run.
        objective: With B and M; plain decoding.
        calibration: What a fit to measurements adds.

    Raises:
        ConfigError: This way cannot plan for these machines, or scipy is not installed.
    """
    fleet = Fleet.of(profiles, network)
    work = Work.of(objective, max(1, objective.batch_size), max(1, objective.num_microbatches))
    try:
        is_alone = objective.goal is Goal.LATENCY
        asked = question(fleet, model, work, calibration, is_answer_alone=is_alone)
        partition = RIVALS[name](asked)
    except ValueError as error:
        raise ConfigError(f"{name} cannot plan for these machines: {error}.") from error
    if partition is None:
        return None
    stages = planned_stages(fleet, model, partition, work)
    return predict(profiles, network, model, stages, objective, calibration)
