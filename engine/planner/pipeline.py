"""Who holds what in a swarm of about one pipeline: the exact plan, from announcements alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from engine.core.errors import NoRoute, PlanInfeasible
from engine.core.ids import PeerId
from engine.core.plans import PlannedStage, Span
from engine.core.profiles import ModelSize, Objective
from engine.core.snapshot import StageState, SwarmSnapshot
from engine.planner.announced import announced
from engine.planner.routing import find_route
from engine.planner.search import plan, predict

USUAL: Final = Objective(batch_size=8, prompt_tokens=128, new_tokens=128)
"""What a swarm is divided for, not knowing what will be asked of it: a few people at once."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The best pipeline of some nodes."""

    spans: Mapping[PeerId, Span]
    """Of those that it needs."""
    tokens_per_s: float


def partition(snapshot: SwarmSnapshot, size: ModelSize) -> Partition | None:
    """The fastest pipeline of those that serve or will; None: they cannot hold the model.

    Args:
        snapshot: The swarm.
        size: The model.
    """
    profiles, network = announced(snapshot, size, _kv_tokens())
    try:
        best = plan(profiles, network, size, USUAL)
    except PlanInfeasible:
        return None
    return Partition({stage.peer: stage.span for stage in best.stages}, best.tokens_per_s)


def tokens_per_s(snapshot: SwarmSnapshot, size: ModelSize) -> float:
    """How fast the swarm is as it stands, JOINING stages included; 0: blocks are missing.

    Args:
        snapshot: The swarm.
        size: The model.
    """
    stages = tuple(
        replace(stage, state=StageState.ONLINE)
        for stage in snapshot.stages
        if stage.state in (StageState.ONLINE, StageState.JOINING)
    )
    seen = replace(snapshot, stages=stages)
    try:
        route = find_route(seen)
    except NoRoute:
        return 0.0
    profiles, network = announced(seen, size, _kv_tokens())
    hops = [PlannedStage(hop.peer, hop.span, 0.0) for hop in route.hops]
    return predict(profiles, network, size, hops, USUAL).tokens_per_s


def _kv_tokens() -> int:
    return USUAL.batch_size * USUAL.context_tokens
