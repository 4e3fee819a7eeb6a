"""`shoal plan --against`: the same machines placed in other ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.bench.placements.rivals import rival_plan
from engine.core.errors import ConfigError
from engine.core.plans import Plan
from engine.profiler.nodes_file import NodesFile


@dataclass(frozen=True, slots=True)
class Rival:
    """What another way has come to."""

    name: str
    plan: Plan | None
    problem: str
    """Why there is no plan; empty where there is one."""


def rivals(nodes: NodesFile, ours: Plan, names: Sequence[str]) -> list[Rival]:
    """Place the machines in other ways, with the batch and micro-batches of our plan.

    Args:
        nodes: The machines and what is asked of them.
        ours: Our plan.
        names: Of `engine.bench.placements.rivals.RIVALS`.
    """
    objective = replace(
        nodes.objective,
        batch_size=ours.batch_size,
        num_microbatches=ours.num_microbatches,
        drafting=None,
    )
    found = []
    for name in names:
        problem = "Nothing that it finds fits."
        try:
            plan = rival_plan(
                name, nodes.profiles, nodes.network, nodes.model, objective, nodes.calibration
            )
        except ConfigError as error:
            plan, problem = None, str(error)
        found.append(Rival(name, plan, "" if plan else problem))
    return found


def compared(ours: Plan, found: Sequence[Rival]) -> list[str]:
    """A line for each; with prompts, plain decoding."""
    width = max(len(rival.name) for rival in found)
    out = []
    for rival in found:
        if rival.plan is None:
            out.append(f"{rival.name:<{width}}  {rival.problem}")
            continue
        rate = rival.plan.sustained_tokens_per_s
        stages = ", ".join(f"{stage.peer} {stage.span}" for stage in rival.plan.stages)
        out.append(
            f"{rival.name:<{width}}  {rate:.4g} tokens/s with prompts, "
            f"{rate / ours.sustained_tokens_per_s:.2f} of ours: {stages}"
        )
    return out
