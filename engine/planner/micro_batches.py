"""Into how many micro-batches a batch should be cut; a pure function over measured costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.ids import PeerId
from engine.core.plans import Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.distances import Distances
from engine.planner.flow import StageTimes, step_s
from engine.planner.routing import UNKNOWN_BLOCK_S

MAX_MICRO_BATCHES = 32
UNKNOWN_ROW_SHARE = 0.03
"""What a row is assumed to add to a pass, as a share of it, where nobody has measured it."""
WORTH_IT = 1.05
"""How much faster twice as many must be: each costs frames and passes that nobody counts."""


@dataclass(frozen=True, slots=True)
class HopCost:
    """A stage and the line to the next one; the last stage's line carries ids only."""

    base_s: float
    """A pass with no rows: reading the weights."""
    row_s: float
    """What each row adds."""
    delay_s: float
    """One way to the next stage."""
    line_row_s: float
    """Time on the line of one row's hidden states."""


def cycle_s(hops: Sequence[HopCost], batch_size: int, num_micro_batches: int) -> float:
    """Time between two tokens of one sequence in the closed ring.

    Args:
        hops: The stages in order, at least one.
        batch_size: B rows.
        num_micro_batches: M.
    """
    rows = -(-batch_size // num_micro_batches)
    stages = [
        StageTimes(hop.base_s + rows * hop.row_s, line_s=rows * hop.line_row_s, delay_s=hop.delay_s)
        for hop in hops
    ]
    return step_s(stages, num_micro_batches)


def choose_micro_batches(hops: Sequence[HopCost], batch_size: int) -> int:
    """The power of two that doubling would not make much faster.

    Args:
        hops: The stages in order, at least one.
        batch_size: B rows, at least one.
    """
    best, best_s = 1, cycle_s(hops, batch_size, 1)
    while 2 * best <= min(batch_size, MAX_MICRO_BATCHES):
        time_s = cycle_s(hops, batch_size, 2 * best)
        if time_s * WORTH_IT > best_s:
            break
        best, best_s = 2 * best, time_s
    return best


def hop_costs(
    route: Route, snapshot: SwarmSnapshot, link_s: Mapping[PeerId, float], row_bytes: int
) -> list[HopCost]:
    """What is known of a route's stages and lines.

    Args:
        route: Its stages in order.
        snapshot: Their announcements.
        link_s: One-way time from here to each, for lines that no stage has measured.
        row_bytes: Hidden states of one row on the wire.
    """
    costs = []
    distances = Distances(snapshot, link_s)
    for index, hop in enumerate(route.hops):
        after = route.hops[(index + 1) % len(route.hops)].peer
        stage = snapshot.stage(hop.peer)
        share = len(hop.span) / len(stage.span) if stage is not None else 1.0
        if stage is None or not stage.decode_tokens_per_s:
            base_s = len(hop.span) * UNKNOWN_BLOCK_S
            row_s, rate = base_s * UNKNOWN_ROW_SHARE, 0.0
        else:
            row_s = share * stage.decode_row_s
            base_s = max(0.0, share / stage.decode_tokens_per_s - row_s)
            base_s += stage.sessions * row_s  # others' rows that share the passes
            rate = stage.uplink_bytes_per_s
        is_last = hop == route.hops[-1]
        costs.append(
            HopCost(
                base_s,
                row_s,
                distances.to(hop.peer, after) if len(route.hops) > 1 else 0.0,
                0.0 if is_last or not rate else row_bytes / rate,
            )
        )
    return costs
