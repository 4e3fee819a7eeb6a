"""Frames over libp2p: raw binary streams, the fastest way that hivemind offers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from hivemind.p2p import PeerID

from engine.config import SwarmConfig
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm.peer import SwarmPeer
from engine.swarm.transport import ByteStream, StreamHandler

_logger = logging.getLogger(__name__)

PROTOCOL = "shoal/frames"
_PIECE_BYTES = 256 << 10


class _HivemindStream:
    def __init__(
        self, peer: PeerId, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._peer = peer
        self._reader = reader
        self._writer = writer

    async def read_exactly(self, num_bytes: int) -> bytes:
        """See `ByteStream`."""
        try:
            return await self._reader.readexactly(num_bytes)
        except (OSError, EOFError) as error:
            raise self._broken() from error

    async def write(self, *buffers: bytes | memoryview) -> None:
        """See `ByteStream`."""
        try:
            for buffer in buffers:
                view = memoryview(buffer)
                # drain() per piece keeps asyncio from copying a whole frame into its own buffer.
                for start in range(0, len(view), _PIECE_BYTES):
                    if self._writer.is_closing():
                        raise self._broken()
                    self._writer.write(view[start : start + _PIECE_BYTES])
                    await self._writer.drain()
        except (OSError, RuntimeError) as error:
            raise self._broken() from error

    def close(self) -> None:
        """See `ByteStream`."""
        with suppress(RuntimeError):  # the loop is closing
            self._writer.transport.abort()

    def _broken(self) -> PeerUnreachable:
        return PeerUnreachable(f"The connection to the peer …{short(self._peer)} broke.")


class HivemindTransport:
    """`transport.Transport` over a `SwarmPeer`; survives the peer's `restart`."""

    def __init__(self, peer: SwarmPeer, config: SwarmConfig) -> None:
        self._peer = peer
        self._config = config

    @property
    def local_peer(self) -> PeerId:
        """See `Transport`."""
        return self._peer.peer_id

    async def open(self, peer: PeerId, addresses: tuple[str, ...] = ()) -> ByteStream:
        """See `Transport`."""
        try:
            if addresses:
                # A failure here is not final: another connection to the peer may exist.
                with suppress(PeerUnreachable):
                    await self._peer.connect(peer, addresses)
            async with asyncio.timeout(self._config.open_timeout_s):
                reader, writer = await self._peer.daemon.open_stream(
                    PeerID.from_base58(peer), PROTOCOL
                )
        except (PeerUnreachable, TimeoutError, ValueError) as error:
            raise PeerUnreachable(
                f"The peer …{short(peer)} cannot be reached; it may be off or behind a firewall."
            ) from error
        return _HivemindStream(peer, reader, writer)

    async def serve(self, handler: StreamHandler) -> None:
        """See `Transport`."""

        async def accept(
            info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            peer = PeerId(info.peer_id.to_base58())
            stream = _HivemindStream(peer, reader, writer)
            # In a task of its own: asyncio's server must not see the handler being cancelled.
            task = asyncio.ensure_future(handler(peer, stream))
            try:
                await asyncio.wait((task,))
            finally:
                stream.close()
                task.cancel()
            if not task.cancelled() and (error := task.exception()) is not None:
                _logger.error("a stream from …%s failed", short(peer), exc_info=error)

        try:
            await self._peer.handle_streams(PROTOCOL, accept)
        except TimeoutError as error:
            raise PeerUnreachable(
                "Shoal's network process does not answer; it is being restarted."
            ) from error
