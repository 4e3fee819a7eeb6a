"""Why no pipeline fits, and what would help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.core.errors import PlanInfeasible
from engine.core.profiles import ModelSize, Objective
from engine.planner.costs import Work, ends_bytes
from engine.planner.fleet import Fleet
from engine.planner.flow import Form
from engine.planner.order import solve
from engine.planner.tables import question


def why_infeasible(fleet: Fleet, model: ModelSize, objective: Objective) -> PlanInfeasible:
    """Find what binds by lifting one limit after the other.

    Args:
        fleet: Machines that cannot run the model as asked.
        model: The model.
        objective: What was asked.
    """
    if not len(fleet):
        return PlanInfeasible(
            "There is no machine to plan for; name at least one.",
            constraint="nodes",
            hint="Name at least one machine.",
        )
    asked = replace(objective, batch_size=objective.batch_size or 1)
    linked = replace(fleet, delay_s=np.zeros_like(fleet.delay_s))
    if _fits(linked, model, asked):
        return _unreachable(fleet)
    if _fits(linked, model, replace(asked, prompt_tokens=0, new_tokens=0, context_tokens=0)):
        return _no_room_for_cache(linked, model, asked)
    return _no_room_for_weights(fleet, model)


def _fits(fleet: Fleet, model: ModelSize, objective: Objective) -> bool:
    work = Work.of(objective, objective.batch_size, 1)
    return solve(question(fleet, model, work, form=Form.SUM)) is not None


def _unreachable(fleet: Fleet) -> PlanInfeasible:
    apart = [
        f"{fleet.peers[one]} cannot reach {fleet.peers[other]}"
        for one, other in np.argwhere(~np.isfinite(fleet.delay_s))
    ]
    named = ", ".join(apart[:4]) + (f" and {len(apart) - 4} more pairs" if len(apart) > 4 else "")
    return PlanInfeasible(
        f"The machines have room for the model, but no ring of them hangs together: {named}; "
        "connect them, or add a machine that reaches both sides.",
        constraint="reachability",
        hint="Connect these machines, or add one that reaches both sides.",
    )


def _no_room_for_cache(fleet: Fleet, model: ModelSize, objective: Objective) -> PlanInfeasible:
    context = _most(
        objective.context_tokens,
        lambda tokens: _fits(fleet, model, replace(objective, context_tokens=tokens)),
    )
    rows = _most(
        objective.batch_size,
        lambda size: _fits(fleet, model, replace(objective, batch_size=size)),
    )
    ways = []
    if context:
        ways.append(f"a context of at most {context} tokens")
    if rows:
        ways.append(f"a batch of at most {rows}")
    total = (
        objective.batch_size
        * objective.context_tokens
        * model.kv_bytes_per_token
        * model.num_blocks
    )
    hint = f"Ask for {' or '.join(ways)}" if ways else "Ask for less context"
    hint += ", or add memory: to the machines, in RAM for a share of the cache, or by another one."
    return PlanInfeasible(
        f"The weights fit, but the cache does not: {objective.batch_size} rows of "
        f"{objective.context_tokens} tokens take {_size(total)} beside them. {hint}",
        constraint="cache",
        hint=hint,
    )


def _no_room_for_weights(fleet: Fleet, model: ModelSize) -> PlanInfeasible:
    ends = ends_bytes(model, is_first=True, is_last=True)
    need = model.num_blocks * model.block_bytes + ends
    have = sum(profile.memory_bytes for profile in fleet.profiles)
    if need > have:
        hint = f"Add machines with at least {_size(need - have)}, or allow more memory."
    else:
        hint = (
            "The room is split so that too few whole blocks, or the first and last stage's tables, "
            "fit; allow some machines more memory."
        )
    return PlanInfeasible(
        f"The model's weights take {_size(need)}, and the machines together allow "
        f"{_size(have)}. {hint}",
        constraint="memory",
        hint=hint,
    )


def _most(below: int, fits: Callable[[int], bool]) -> int:
    """The largest number under `below` that fits; 0: none."""
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"
