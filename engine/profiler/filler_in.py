"""Filler that comes in: only what was allowed, noted frame by frame."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from engine.core.clock import Clock
from engine.core.errors import PeerError, PeerUnreachable, RemoteProtocolError
from engine.core.ids import PeerId
from engine.profiler.arrivals import Arrivals
from engine.protocol.frames import Frame, Kind
from engine.protocol.probes import PIECE_BYTES, parse_filler
from engine.swarm.links import Links

_MIN_FRAME_BYTES: Final = 1024
"""Smaller ones would cost us more than their sender, but for the last of a train."""
_HEADS: Final = 64
"""One in so many bytes may be head rather than filler."""


class FillerIn:
    """Of all peers; at most one train of each at a time."""

    def __init__(self, links: Links, clock: Clock) -> None:
        self._clock = clock
        self._trains: dict[PeerId, tuple[Arrivals, asyncio.Future[Arrivals]]] = {}
        self._allowed_bytes: dict[PeerId, int] = {}
        """Also of trains that we no longer wait for, which may still be on their way."""
        links.on([Kind.FILLER], self._on_filler)
        links.on_lost(self._on_lost)

    @contextmanager
    def expected(
        self, peer: PeerId, request: int, num_bytes: int
    ) -> Iterator[asyncio.Future[Arrivals]]:
        """Let a peer send a train while the block runs; the future has it when it is complete."""
        assert peer not in self._trains, "one train of a peer at a time"
        train: asyncio.Future[Arrivals] = asyncio.get_running_loop().create_future()
        self._trains[peer] = Arrivals(request), train
        self._allowed_bytes[peer] = num_bytes + num_bytes // _HEADS + PIECE_BYTES
        try:
            yield train
        finally:
            del self._trains[peer]

    def is_expected(self, peer: PeerId) -> bool:
        """Whether a train of the peer is under way."""
        return peer in self._trains

    def has_begun(self, peer: PeerId) -> bool:
        """Whether something of its train has come."""
        arrivals, _ = self._trains.get(peer, (None, None))
        return arrivals is not None and bool(arrivals.times_s)

    def _on_filler(self, peer: PeerId, frame: Frame) -> None:
        filler = parse_filler(frame)
        left = self._allowed_bytes.get(peer, 0) - frame.num_bytes
        if left < 0 or (frame.num_bytes < _MIN_FRAME_BYTES and not filler.is_last):
            raise RemoteProtocolError("The peer sent filler that nobody had asked for.")
        self._allowed_bytes[peer] = left
        arrivals, train = self._trains.get(peer, (None, None))
        if arrivals is None or train is None or arrivals.request != filler.request or train.done():
            return  # of a probe that has been given up
        arrivals.add(filler, frame.num_bytes, self._clock.monotonic_s())
        if filler.is_last:
            train.set_result(arrivals)

    def _on_lost(self, peer: PeerId, error: PeerError) -> None:
        self._allowed_bytes.pop(peer, None)
        _, train = self._trains.get(peer, (None, None))
        if train is not None and not train.done():
            train.set_exception(PeerUnreachable(str(error)))
            train.exception()  # nobody may be waiting yet; that is fine
