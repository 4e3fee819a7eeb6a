"""Why no pipeline fits, and what would help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from engine.core.errors import PlanInfeasible
from engine.core.profiles import ModelSize, Objective
from engine.planner.costs import Work, ends_bytes, workspace_bytes
from engine.planner.fleet import Fleet
from engine.planner.flow import Form
from engine.planner.improve import improved
from engine.planner.order import EXACT_MACHINES, solve
from engine.planner.tables import NEVER, question

_ENDLESS_BYTES: Final = 1 << 60
_HALVINGS: Final = 10
"""What is missing is found to a thousandth of what is needed."""


def why_infeasible(fleet: Fleet, model: ModelSize, objective: Objective) -> PlanInfeasible:
    """Find what binds by lifting one limit after the other.

    Args:
        fleet: Machines that cannot run the model as asked.
        model: The model.
        objective: What was asked.
    """
    if not len(fleet):
        return _refusal("nodes", "There is no machine to plan for", "name at least one.")
    asked = replace(objective, batch_size=objective.batch_size or 1)
    fast = replace(fleet, bytes_per_s=np.full_like(fleet.bytes_per_s, np.inf))
    if _fits(fast, model, asked):
        return _refusal(
            "lines",
            "The lines between the machines are so slow that hidden states would be under way for "
            "more than a quarter of an hour",
            "use faster lines, or fewer machines with more memory.",
        )
    near = replace(fast, delay_s=np.zeros_like(fleet.delay_s))
    if _fits(near, model, asked):
        return _unreachable(fleet)
    if not _fits(_roomier(near, _ENDLESS_BYTES), model, asked):
        return _refusal(
            "compute",
            "However the blocks are shared out, some machine would compute for more than a quarter "
            "of an hour in every step",
            "use faster machines, more of them, or a smaller batch.",
        )
    # What helps must help on the real lines, too, unless these are a problem of their own.
    real = fleet if _fits(_roomier(fleet, _ENDLESS_BYTES), model, asked) else near
    weights = replace(asked, batch_size=1, prompt_tokens=0, new_tokens=0, context_tokens=0)
    if _fits(near, model, weights):
        return _no_room_for_cache(real, model, asked)
    return _no_room_for_weights(real, model, asked)


def _refusal(constraint: str, why: str, what_helps: str) -> PlanInfeasible:
    hint = what_helps[0].upper() + what_helps[1:]
    return PlanInfeasible(f"{why}; {what_helps}", constraint=constraint, hint=hint)


def _fits(fleet: Fleet, model: ModelSize, objective: Objective) -> bool:
    work = Work.of(objective, objective.batch_size, 1)
    asked = question(fleet, model, work, form=Form.SUM)
    room = (asked.stage_ns < NEVER).any(axis=1) * np.arange(model.num_blocks + 1)
    if room.max(axis=1).sum() < model.num_blocks:
        return False
    # Whether, not how fast: no order of many needs to be improved for that.
    found = solve(asked) if len(fleet) <= EXACT_MACHINES else improved(asked, rounds=0)
    return found is not None


def _roomier(fleet: Fleet, more_bytes: int) -> Fleet:
    """The same with so much more memory on each machine."""
    profiles = tuple(
        replace(profile, memory_bytes=profile.memory_bytes + more_bytes)
        for profile in fleet.profiles
    )
    return replace(fleet, profiles=profiles)


def _unreachable(fleet: Fleet) -> PlanInfeasible:
    apart = [
        f"{fleet.peers[one]} cannot reach {fleet.peers[other]}"
        for one, other in np.argwhere(~np.isfinite(fleet.delay_s))
    ]
    named = ", ".join(apart[:4]) + (f" and {len(apart) - 4} more pairs" if len(apart) > 4 else "")
    return _refusal(
        "reachability",
        f"The machines have room for the model, but no ring of them hangs together: {named}",
        "connect these machines, or add one that reaches both sides.",
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
    if context >= objective.prompt_tokens + objective.new_tokens:
        ways.append(f"ask for a context of at most {context} tokens")
    if rows:
        ways.append(f"ask for a batch of at most {rows}")
    ways.append(_more_memory(fleet, model, objective))
    total = _cache_bytes(model, objective)
    return _refusal(
        "cache",
        f"The weights fit, but the cache does not: {objective.batch_size} rows of "
        f"{objective.context_tokens} tokens take {_size(total)} beside them",
        ", or ".join(ways),
    )


def _no_room_for_weights(fleet: Fleet, model: ModelSize, objective: Objective) -> PlanInfeasible:
    need = _weight_bytes(model)
    have = sum(profile.memory_bytes for profile in fleet.profiles)
    but = "" if need > have else ", but split so that whole blocks and a pass's values do not fit"
    return _refusal(
        "memory",
        f"The model's weights take {_size(need)}, and the machines together allow "
        f"{_size(have)}{but}",
        _more_memory(fleet, model, objective),
    )


def _more_memory(fleet: Fleet, model: ModelSize, objective: Objective) -> str:
    """What each machine would have to allow beyond what it does, so that all fits; rounded up."""
    workspace = workspace_bytes(model, objective.batch_size)
    low, high = 0, _weight_bytes(model) + _cache_bytes(model, objective) + workspace
    for _ in range(_HALVINGS):
        middle = (low + high) // 2
        if _fits(_roomier(fleet, middle), model, objective):
            high = middle
        else:
            low = middle
    unit, name = (10**8, "GB") if high >= 10**9 else (10**5, "MB")
    return f"allow each machine at least {-(-high // unit) / 10:g} {name} more memory, or add machines."


def _weight_bytes(model: ModelSize) -> int:
    return model.num_blocks * model.block_bytes + ends_bytes(model, is_first=True, is_last=True)


def _cache_bytes(model: ModelSize, objective: Objective) -> int:
    tokens = objective.batch_size * objective.context_tokens
    return tokens * model.kv_bytes_per_token * model.num_blocks


def _most(below: int, fits: Callable[[int], bool]) -> int:
    """The largest number under `below` that fits; 0: none."""
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"
