"""Frames over libp2p: raw binary streams, the fastest way that hivemind offers."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from contextlib import suppress
from typing import Any

from hivemind.p2p import PeerID

from engine.config import SwarmConfig
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.core.reach import LinkPath, Reach
from engine.swarm.addresses import is_plain, is_public, relay_of
from engine.swarm.moving_stream import TOKEN_BYTES, MovingStream, refuse
from engine.swarm.peer import SwarmPeer
from engine.swarm.transport import ByteStream, StreamHandler
from engine.swarm.upkeep import Connections

_logger = logging.getLogger(__name__)

PROTOCOL = "shoal/frames"
MOVE_PROTOCOL = "shoal/move"
_MAX_UNKNOWN = 256
_MAX_UNKNOWN_PER_PEER = 6
"""Streams that have not said which they are, which costs us a file each."""


class HivemindTransport:
    """`transport.Transport` over a `SwarmPeer`; survives the peer's `restart`.

    Streams that began over a relay move to a direct connection as soon as there is one.
    """

    def __init__(self, peer: SwarmPeer, config: SwarmConfig) -> None:
        self._peer = peer
        self._config = config
        self._outgoing: dict[PeerId, MovingStream] = {}
        self._plain_addresses: dict[PeerId, frozenset[str]] = {}
        """At which the peers that we have streams to accept connections, as they say."""
        self._incoming: dict[tuple[PeerId, bytes], MovingStream] = {}
        self._silent: set[PeerId] = set()
        self._unknown: Counter[PeerId] = Counter()
        peer.watch_connections(self._improve)

    @property
    def local_peer(self) -> PeerId:
        """See `Transport`."""
        return self._peer.peer_id

    def path(self, peer: PeerId) -> tuple[LinkPath, PeerId | None] | None:
        """See `Transport`."""
        stream = self._outgoing.get(peer)
        if stream is None or not stream.is_open:
            return None
        relay = relay_of(stream.address)
        if relay is not None:
            return LinkPath.RELAYED, relay
        # Neither accepts connections, or not there: our routers have opened this way for each other.
        accepts = self._plain_addresses.get(peer, frozenset())
        told = stream.address in accepts if accepts else not stream.has_moved
        is_hidden = self._peer.reach not in (Reach.LOCAL, Reach.DIRECT)
        is_punched = is_hidden and is_public(stream.address) and not told
        return (LinkPath.PUNCHED if is_punched else LinkPath.DIRECT), None

    def forget(self, peer: PeerId) -> None:
        """See `Transport`: libp2p itself would take 40 s to notice."""
        self._silent.add(peer)

    async def open(self, peer: PeerId, addresses: tuple[str, ...] = ()) -> ByteStream:
        """See `Transport`."""
        try:
            if peer in self._silent:
                self._silent.discard(peer)
                async with asyncio.timeout(self._config.open_timeout_s):
                    await self._peer.daemon.disconnect(PeerID.from_base58(peer))
            if addresses:
                # A failure here is not final: another connection to the peer may exist.
                with suppress(PeerUnreachable):
                    await self._peer.connect(peer, addresses)
            async with asyncio.timeout(self._config.open_timeout_s):
                address, reader, writer = await self._peer.daemon.open_stream(
                    PeerID.from_base58(peer), PROTOCOL
                )
        except (PeerUnreachable, TimeoutError, ValueError) as error:
            raise PeerUnreachable(
                f"The peer …{short(peer)} cannot be reached; it may be off or behind a firewall."
            ) from error
        token = secrets.token_bytes(TOKEN_BYTES)
        writer.write(token)
        stream = MovingStream(peer, address, token, (reader, writer))
        self._outgoing[peer] = stream
        self._plain_addresses[peer] = frozenset(filter(is_plain, addresses))
        return stream

    async def serve(self, handler: StreamHandler) -> None:
        """See `Transport`."""

        async def accept(
            info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            peer = PeerId(info.peer_id.to_base58())
            token = await self._read_token(peer, reader, writer)
            if token is None:
                return
            if (peer, token) in self._incoming:
                writer.close()
                return
            stream = MovingStream(peer, str(info.addr), token, (reader, writer))
            self._incoming[peer, token] = stream
            # In a task of its own: asyncio's server must not see the handler being cancelled.
            task = asyncio.ensure_future(handler(peer, stream))
            try:
                await asyncio.wait((task,))
            finally:
                del self._incoming[peer, token]
                stream.close()
                task.cancel()
            if not task.cancelled() and (error := task.exception()) is not None:
                _logger.error("a stream from …%s failed", short(peer), exc_info=error)

        try:
            await self._peer.handle_streams(PROTOCOL, accept)
            await self._peer.handle_streams(MOVE_PROTOCOL, self._follow)
        except TimeoutError as error:
            raise PeerUnreachable(
                "Shoal's network process does not answer; it is being restarted."
            ) from error

    async def _improve(self, connections: Connections) -> None:
        """Move streams off their relays where a direct connection has come about."""
        self._outgoing = {peer: s for peer, s in self._outgoing.items() if s.is_open}
        self._plain_addresses = {peer: self._plain_addresses[peer] for peer in self._outgoing}
        self._silent &= connections.keys()
        await asyncio.gather(
            *(
                self._move(stream)
                for peer, stream in self._outgoing.items()
                if relay_of(stream.address) is not None
                and any(map(is_plain, connections.get(peer, ())))
            )
        )

    async def _move(self, stream: MovingStream) -> None:
        try:
            async with asyncio.timeout(self._config.open_timeout_s):
                address, reader, writer = await self._peer.daemon.open_stream(
                    PeerID.from_base58(stream.peer), MOVE_PROTOCOL
                )
                if not is_plain(address):
                    writer.close()
                elif await stream.move(address, (reader, writer)):
                    _logger.info("the stream to …%s left its relay", short(stream.peer))
        except (PeerUnreachable, TimeoutError) as error:
            _logger.info("the stream to …%s stays on its relay: %s", short(stream.peer), error)

    async def _follow(
        self, info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        peer = PeerId(info.peer_id.to_base58())
        token = await self._read_token(peer, reader, writer)
        if token is None:
            return
        stream = self._incoming.get((peer, token))
        if stream is None:
            refuse(writer)
            return
        try:
            async with asyncio.timeout(self._config.open_timeout_s):
                await stream.follow(str(info.addr), (reader, writer))
        except (PeerUnreachable, TimeoutError) as error:
            writer.close()
            _logger.info("a stream of …%s could not move: %s", short(stream.peer), error)

    async def _read_token(
        self, peer: PeerId, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        if self._unknown[peer] >= _MAX_UNKNOWN_PER_PEER or self._unknown.total() >= _MAX_UNKNOWN:
            writer.close()
            return None
        self._unknown[peer] += 1
        try:
            async with asyncio.timeout(self._config.open_timeout_s):
                return await reader.readexactly(TOKEN_BYTES)
        except (OSError, EOFError, TimeoutError):
            writer.close()
            return None
        finally:
            self._unknown -= Counter((peer,))
