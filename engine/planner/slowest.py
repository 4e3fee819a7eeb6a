"""What a token spends most of its time on, along a route; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.core.ids import PeerId
from engine.core.plans import Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.distances import Distances
from engine.planner.routing import expected_block_s


@dataclass(frozen=True, slots=True)
class Part:
    """One stage's compute, or the way from one stage to the next."""

    peer: PeerId
    to: PeerId | None
    """None: it computes."""
    time_s: float
    is_measured: bool = True
    """False: nobody has measured this way yet, and the time is what routes count it with."""


def parts(route: Route, snapshot: SwarmSnapshot, link_s: Mapping[PeerId, float]) -> list[Part]:
    """All that a token of one sequence passes in the ring, with what each takes.

    Args:
        route: The stages in order.
        snapshot: Their announcements.
        link_s: One-way time to each peer, as measured from here.

    Returns:
        Nothing where a stage has not measured itself.
    """
    found = []
    distances = Distances(snapshot, link_s)
    for index, hop in enumerate(route.hops):
        stage = snapshot.stage(hop.peer)
        if stage is None or not stage.decode_tokens_per_s:
            return []
        found.append(Part(hop.peer, None, len(hop.span) * expected_block_s(stage)))
        after = route.hops[(index + 1) % len(route.hops)].peer
        if after != hop.peer:
            is_measured = distances.measured_s(hop.peer, after) is not None
            found.append(Part(hop.peer, after, distances.to(hop.peer, after), is_measured))
    return found
