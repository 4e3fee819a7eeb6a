"""Who has to send and compute what, so that a sequence can go on over a repaired route. Pure.

Every stage says how far it has computed and what it has kept of its outputs. Going backwards from
the last stage, each takes what it lacks from the record of the stage before it; where that has a
hole, or is new itself, the stage before it computes again, from what it gets by the same rule. In
the end only ids remain, and the client has them all ([PT] §3.2, from peer to peer).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HopState:
    """How far a stage is with one sequence; all zeros for one that is new."""

    position: int = 0
    """Tokens computed, and their outputs handed on."""
    kept_from: int = 0
    """Its outputs of all tokens from here to `position` can be replayed."""


@dataclass(frozen=True, slots=True)
class HopFlow:
    """What a stage does in the new attempt."""

    compute_from: int
    """The first token whose input it gets, and computes."""
    send_from: int
    """The first token whose output the next stage needs."""
    replay_until: int
    """What it has kept of tokens `[send_from, replay_until)` goes on first; empty when equal."""


def plan_flow(num_ids: int, states: Sequence[HopState]) -> tuple[HopFlow, ...]:
    """Plan one sequence's way.

    Args:
        num_ids: Ids that the client holds, at least 1. The last one is computed again by all, since
            the last stage may have lost what it drew there.
        states: Of each stage, in the route's order.

    Returns:
        One flow per stage. The client sends ids from the first one's `compute_from` on.
    """
    flows: list[HopFlow] = []
    needed = num_ids - 1  # by the stage behind; none of them has more than that
    for state in reversed(states):
        own = min(state.position, num_ids - 1)
        if needed < own and state.kept_from > needed:
            own = needed
        flows.append(HopFlow(own, needed, max(own, needed)))
        needed = own
    return tuple(reversed(flows))
