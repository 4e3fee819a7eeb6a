"""Sending filler: as long as asked, in a line's gaps, with no more on its way than keeps it busy."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Final

from engine.core.clock import Clock
from engine.core.ids import PeerId
from engine.profiler.growth import Growth
from engine.protocol.frames import HEADER_BYTES
from engine.protocol.probes import MAX_TRAIN_S, PIECE_BYTES, Filler, Phase, filler_frame
from engine.swarm.links import Links

_LOOK_EVERY_S: Final = 0.002
TRAIN_LIMIT_S: Final = MAX_TRAIN_S + 8.0
"""Until all has arrived that was on its way when the sender ended."""
_USUAL_RTT_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Train:
    """Filler for one probe."""

    peer: PeerId
    request: int
    num_bytes: int
    """At most."""
    hold_s: float
    """How long to go on at full rate."""
    limit_s: float
    """How long to send at most."""


async def send(links: Links, clock: Clock, train: Train) -> int:
    """Send a train, until its last frame has been queued.

    Returns:
        Bytes of filler.

    Raises:
        PeerUnreachable: The link broke.
    """
    noise = os.urandom(PIECE_BYTES)  # a line may compress
    began_s = clock.monotonic_s()
    growth = Growth(links.neighbours.rtt_s(train.peer) or _USUAL_RTT_S, began_s)
    others_bytes = links.neighbours.in_flight_bytes(train.peer)
    sent_bytes = 0
    while True:
        now_s = clock.monotonic_s()
        in_flight = links.neighbours.in_flight_bytes(train.peer)
        growth.arrived(max(0, sent_bytes + others_bytes - in_flight), now_s)
        steady_s = growth.steady_since_s
        is_steady = steady_s is not None
        held = steady_s is not None and now_s - steady_s >= train.hold_s
        if held or sent_bytes >= train.num_bytes or now_s - began_s >= train.limit_s:
            break
        while in_flight < growth.limit_bytes and sent_bytes < train.num_bytes:
            size = min(PIECE_BYTES, train.num_bytes - sent_bytes)
            phase = Phase.STEADY if is_steady else Phase.GROWING
            frame = filler_frame(Filler(train.request, phase), noise[:size])
            links.send(train.peer, frame)
            sent_bytes += size
            in_flight += size + HEADER_BYTES
        await asyncio.sleep(_LOOK_EVERY_S)
    last = Phase.LAST if is_steady else Phase.LAST_UNSTEADY
    links.send(train.peer, filler_frame(Filler(train.request, last), b""))
    return sent_bytes
