"""Byte streams between peers: the interface that hivemind's libp2p and the in-memory one share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from engine.core.ids import PeerId
from engine.core.reach import LinkPath


class ByteStream(Protocol):
    """One bidirectional stream. Every method may raise `PeerUnreachable` once the stream broke."""

    @property
    def piece_bytes(self) -> int:
        """The most to read at once, so that each read is a sign of life however slow we must be."""
        ...

    async def read_into(self, buffer: memoryview) -> None:
        """Fill a buffer of bytes with those that come next."""
        ...

    async def write(self, *buffers: bytes | memoryview) -> None:
        """Write the buffers in order; returns when the transport has room for more."""
        ...

    def close(self) -> None:
        """Drop the stream at once; safe to call twice."""
        ...


StreamHandler = Callable[[PeerId, ByteStream], Awaitable[None]]


class Transport(Protocol):
    """A peer's ability to open streams to other peers and to accept theirs."""

    @property
    def local_peer(self) -> PeerId:
        """Our own id."""
        ...

    def path(self, peer: PeerId) -> tuple[LinkPath, PeerId | None] | None:
        """How our newest stream to `peer` travels, and over which relay; None when there is none."""
        ...

    def forget(self, peer: PeerId) -> None:
        """Trust no connection that exists to `peer`: nothing has come over it for too long."""
        ...

    async def open(self, peer: PeerId, addresses: tuple[str, ...] = ()) -> ByteStream:
        """Open a stream to `peer`, which its `serve` handler receives.

        Args:
            peer: Whom to reach; never ourselves.
            addresses: Plain or circuit multiaddrs, tried when we have no connection yet.

        Raises:
            PeerUnreachable: No connection could be made in time.
        """
        ...

    async def serve(self, handler: StreamHandler) -> None:
        """Let `handler` run for each stream that another peer opens. Call once."""
        ...
