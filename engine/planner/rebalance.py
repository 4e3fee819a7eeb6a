"""Whether a node should hold other blocks than it does, and which."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.core.snapshot import SwarmSnapshot
from engine.planner.placement import choose_span

WORTH_A_MOVE = 0.2
"""By what part the swarm must gain before a node leaves its blocks ([PT] App. D)."""


@dataclass(frozen=True, slots=True)
class Move:
    """New blocks for one node."""

    span: Span
    reason: str
    """A sentence for the node's owner."""
    gain: float
    """By what part the rate of the least served block rises; `inf`: from nothing."""


def decide(
    snapshot: SwarmSnapshot,
    peer: PeerId,
    max_blocks: int,
    *,
    size: ModelSize | None = None,
    min_gain: float = WORTH_A_MOVE,
) -> Move | None:
    """Say which blocks `peer` should go to, if it should.

    One question for every occasion:

    - `peer` has no stage in the snapshot: it joins, and gets a move in any case.
    - Its stage is JOINING: it has told its intent, and asks again when the others have had time to
      see it. None: go on. A move: a peer with a lower id had the same aim, or the swarm has
      changed; announce the new intent and ask again.
    - Its stage is ONLINE: the periodic check. None: stay.

    Stages of others that are JOINING count as if they served already.

    Args:
        snapshot: The swarm.
        peer: Who asks.
        max_blocks: Blocks that fit there, at least 1.
        size: The model's, for the exact partition of a small swarm; None: best response there, too.
        min_gain: By what part the swarm must gain before a stage that serves moves.

    Raises:
        ValueError: `max_blocks` is below 1.
    """
    del size, min_gain  # so far nobody moves
    if snapshot.stage(peer) is not None:
        return None
    return Move(choose_span(snapshot, max_blocks), "The swarm serves these blocks worst.", 0.0)


def wait_s(rng: Random, every_s: float) -> float:
    """Time until the next check: `every_s` on average, and so spread that no two nodes keep step.

    Args:
        rng: The node's own.
        every_s: Mean time between two checks.
    """
    return rng.uniform(0.5, 1.5) * every_s
