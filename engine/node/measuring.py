"""What `shoal measure` asks of a running engine: its lines to other members, and how it is reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.core.ids import PeerId
from engine.localapi.measurements import NetworkMeasurement, PeerMeasurement, Quantity
from engine.localapi.schema import MeasureRequest
from engine.node.membership import Membership
from engine.profiler.network import FULL, QUICK

_BELIEVED_OF: Final = 3
"""So many tell how fast our bytes came: then the fastest is not believed."""


async def measure_network(membership: Membership, request: MeasureRequest) -> NetworkMeasurement:
    """Measure lines to a few members, the nearest first, unless that costs somebody money."""
    joined, serving = membership.joined, membership.serving
    if membership.invite is None:
        return NetworkMeasurement(note="This node is in no swarm, so no line was measured.")
    if joined is None or serving is None:
        return NetworkMeasurement(
            note=f"No line was measured, because the engine is not ready: {membership.doing}"
        )
    known = NetworkMeasurement(
        reachability=joined.peer.reach, metered=await joined.prober.is_metered()
    )
    if known.metered and not request.on_metered:
        return known.model_copy(
            update={
                "note": "The connection costs by the byte, so no line was measured; ask with "
                "--on-metered to measure nevertheless."
            }
        )
    distances_s = joined.links.neighbours.one_way_s()
    others = {stage.peer for stage in serving.directory.snapshot().stages} - {joined.peer.peer_id}
    effort = QUICK if request.quick else FULL
    nearest = sorted(others, key=lambda peer: (distances_s.get(peer, 1e9), peer))[: effort.peers]
    if not nearest:
        return known.model_copy(
            update={"note": "No other member is there, so no line was measured."}
        )
    measured = await joined.prober.measure(nearest, effort)
    paths = {link.peer: link.path for link in joined.links.neighbours.open_links()}
    peers = tuple(
        line.model_copy(update={"path": paths.get(PeerId(line.peer))}) for line in measured
    )
    return known.model_copy(
        update={
            "peers": peers,
            "uplink_bytes_per_s": own_uplink(peers),
            "downlink_bytes_per_s": own_downlink(peers),
            "note": "" if peers else "No other member answered, so no line was measured.",
        }
    )


def own_uplink(peers: Sequence[PeerMeasurement]) -> Quantity | None:
    """What our own line carries outward: the fastest that peers say, but not one's word alone."""
    told = _fastest_first([peer.uplink_bytes_per_s for peer in peers])
    return told[1 if len(told) >= _BELIEVED_OF else 0] if told else None


def own_downlink(peers: Sequence[PeerMeasurement]) -> Quantity | None:
    """What it carries inward: the fastest that came, for each peer's own line may be slower."""
    seen = _fastest_first([peer.downlink_bytes_per_s for peer in peers])
    return seen[0] if seen else None


def _fastest_first(rates: Sequence[Quantity | None]) -> list[Quantity]:
    known = [rate for rate in rates if rate is not None]
    return sorted(known, key=lambda rate: rate.value, reverse=True)
