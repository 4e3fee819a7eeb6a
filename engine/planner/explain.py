"""Where a plan's numbers come from, and what binds."""

from __future__ import annotations

from engine.core.plans import Term
from engine.core.profiles import Calibration, ModelSize, Objective
from engine.planner.account import Account
from engine.planner.fleet import Fleet


def bottleneck(done: Account) -> str:
    """What binds, in words."""
    if done.is_bound_by_way:
        return "the way round"
    index, is_line = done.busiest
    peer = done.stages[index].peer
    if is_line:
        after = done.stages[(index + 1) % len(done.stages)].peer
        return f"the line from {peer} to {after}"
    return f"the compute of {peer}"


def terms(
    done: Account, fleet: Fleet, model: ModelSize, objective: Objective, calibration: Calibration
) -> tuple[Term, ...]:
    """Every number, in the order in which one follows from another."""
    return ()
