"""Links to other peers: the layer on which everything else sends and receives frames.

Each peer opens one long-lived stream to each peer that it sends to, so frames between two peers
travel over two streams, one per direction. A link is the pair: when either stream breaks, frames
may be lost, so the whole link is given up and `on_lost` tells. A frame to ourselves takes the same
path without a stream, so that one node alone runs the same code as a swarm.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence

from engine.config import SwarmConfig
from engine.core.clock import Clock
from engine.core.errors import (
    PeerDropped,
    PeerError,
    PeerSilent,
    PeerUnreachable,
    RemoteProtocolError,
)
from engine.core.ids import PeerId, short
from engine.protocol.frames import ROW_KINDS, Frame, Kind
from engine.swarm.channel import Channel
from engine.swarm.faults import Faults
from engine.swarm.gate import Gate
from engine.swarm.handshake import Membership
from engine.swarm.incoming import IncomingLink, Refused
from engine.swarm.link_codec import CodecWork, IncomingCodec
from engine.swarm.neighbours import Neighbour, Neighbours
from engine.swarm.outgoing import OutgoingLink
from engine.swarm.transport import ByteStream, Transport

_logger = logging.getLogger(__name__)

FrameHandler = Callable[[PeerId, Frame], None]
LinkedHandler = Callable[[PeerId], None]
LostHandler = Callable[[PeerId, PeerError], None]

_RETRY_MIN_S = 0.5
_RETRY_MAX_S = 10.0


class Links:
    """All links of this node. Everything but `start`, `stop` and `connect` returns at once."""

    def __init__(
        self, transport: Transport, config: SwarmConfig, clock: Clock, membership: Membership
    ) -> None:
        self._transport = transport
        self._config = config
        self._clock = clock
        self._membership = membership
        self._handlers: dict[Kind, list[FrameHandler]] = {}
        self._linked_handlers: list[LinkedHandler] = []
        self._lost_handlers: list[LostHandler] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._codec_work = CodecWork()
        self.neighbours = Neighbours(transport, config, clock, self._codec_work)
        """Tells what is known of their links."""
        self._stopping = False
        self._faults = Faults(config.faults)
        self.gate = Gate(clock)
        """Counts refusals and violations."""
        self.hidden_bytes = 0
        """Of hidden states sent to and taken from other peers."""

    @property
    def local_peer(self) -> PeerId:
        """Our own id."""
        return self._transport.local_peer

    async def start(self) -> None:
        """Accept streams from now on."""
        await self._transport.serve(self._accept)

    async def stop(self) -> None:
        """Drop every link; nobody is told by `on_lost`."""
        self._stopping = True
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets what the streams cancelled end too

    def on(self, kinds: Iterable[Kind], handler: FrameHandler) -> None:
        """Let `handler` have every frame of these kinds, in order of arrival per peer.

        A handler that raises `RemoteProtocolError` has the peer dropped.
        """
        for kind in kinds:
            self._handlers.setdefault(kind, []).append(handler)

    def on_linked(self, handler: LinkedHandler) -> None:
        """Let `handler` know of every stream, to or from a peer, that begins to work."""
        self._linked_handlers.append(handler)

    def on_lost(self, handler: LostHandler) -> None:
        """Let `handler` know of every link that ended, and why."""
        self._lost_handlers.append(handler)

    def protocol(self, peer: PeerId) -> int:
        """The version of the protocol that we speak to `peer`; 0 while no link to it works."""
        if peer == self.local_peer:
            return self._membership.protocols.newest
        neighbour = self.neighbours.get(peer)
        link = None if neighbour is None else neighbour.outgoing
        return 0 if link is None else link.protocol

    def learn_addresses(self, peer: PeerId, addresses: Sequence[str]) -> None:
        """Where `peer` can be reached: plain or circuit multiaddrs."""
        if peer != self.local_peer:
            self.neighbours.of(peer).addresses = tuple(addresses)

    def send(self, peer: PeerId, frame: Frame) -> None:
        """Queue a frame, opening the link if there is none. Do not change its payload afterwards.

        Raises:
            PeerUnreachable: The peer is known to be gone, or too much is waiting for it.
            LocalProtocolError: The frame does not hold together.
        """
        if peer == self.local_peer:
            asyncio.get_running_loop().call_soon(self._deliver_local, frame)
            return
        neighbour = self.neighbours.of(peer)
        if neighbour.outgoing is None and self._clock.monotonic_s() < neighbour.retry_at_s:
            raise PeerUnreachable(neighbour.last_error)
        link = self._link(peer, neighbour)
        if frame.kind in ROW_KINDS and link.is_up and self._faults.strikes():
            link.close()
            return
        link.put(frame)
        self._count_hidden(frame)

    def answer(self, peer: PeerId, frame: Frame) -> None:
        """Send what nobody misses when the peer is gone."""
        with contextlib.suppress(PeerUnreachable):
            self.send(peer, frame)

    async def connect(self, peer: PeerId, addresses: Sequence[str] = ()) -> None:
        """Make sure of a working link.

        Raises:
            PeerUnreachable: The peer did not answer in time.
            StageRefused: We are no member of its swarm, or it is none of ours.
        """
        if peer == self.local_peer:
            return
        neighbour = self.neighbours.of(peer)
        if addresses:
            neighbour.addresses = tuple(addresses)
        link = self._link(peer, neighbour)
        await asyncio.shield(link.settled)
        if link.error is not None:
            raise link.error

    # Outgoing

    def _count_hidden(self, frame: Frame) -> None:
        if frame.width:
            self.hidden_bytes += len(frame.payload)

    def _link(self, peer: PeerId, neighbour: Neighbour) -> OutgoingLink:
        if self._stopping:
            raise PeerUnreachable("Shoal is ending.")
        banned = self.gate.ban_reason(peer)
        if banned:
            raise PeerDropped(banned)
        if neighbour.outgoing is None:
            link = OutgoingLink(
                peer,
                neighbour.addresses,
                self._transport,
                self._membership,
                self._config,
                neighbour.shaper,
                neighbour.codec,
                self._clock,
            )
            neighbour.outgoing = link
            link.settled.add_done_callback(lambda _: self._linked(peer) if link.is_up else None)
            task = asyncio.create_task(self._drive(peer, neighbour, link), name=f"link-{peer}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return neighbour.outgoing

    async def _drive(self, peer: PeerId, neighbour: Neighbour, link: OutgoingLink) -> None:
        error: PeerError = PeerUnreachable("Shoal is ending.")
        try:
            await link.run()
        except PeerError as broke:
            error = broke
        except RemoteProtocolError as violation:
            error = PeerDropped(str(violation))
            self.gate.ban(peer, violation)
        except Exception:
            _logger.exception("the link to …%s failed", short(peer))
            error = PeerUnreachable(f"The link to the peer …{short(peer)} failed; see the log.")
        finally:
            link.fail(error)
            if neighbour.outgoing is link and not self._stopping:
                self._lose(peer, neighbour, error)

    # Incoming

    async def _accept(self, peer: PeerId, stream: ByteStream) -> None:
        if self._stopping or not self.gate.enter(peer):
            stream.close()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(peer, stream)
        finally:
            self._tasks.discard(task)
            self.gate.leave(peer)

    async def _serve(self, peer: PeerId, stream: ByteStream) -> None:
        known = self.neighbours.get(peer)
        shaper = known.shaper if known else self.neighbours.shaper(peer)
        channel = Channel(shaper.wrap(stream), self._config.dead_after_s)
        codec = IncomingCodec(self._clock, self._codec_work)
        link = IncomingLink(
            peer, self.local_peer, channel, self._membership, self._config, codec, self._clock
        )
        error = PeerUnreachable("Shoal is ending.")
        neighbour: Neighbour | None = None
        try:
            await link.welcome()
            if self.neighbours.get(peer) is None:
                self.neighbours.add(peer, known or self.neighbours.new(shaper))
            neighbour = self.neighbours.of(peer)
            if neighbour.incoming is not None:
                replaced = PeerUnreachable(f"The peer …{short(peer)} opened a new link.")
                self._lose(peer, neighbour, replaced)
            neighbour.incoming = link
            neighbour.failures, neighbour.retry_at_s = 0, 0.0
            self._linked(peer)
            await link.run(self._deliver)
        except Refused as refusal:
            self.gate.refused += 1
            _logger.warning("%s", refusal)
        except PeerUnreachable as broke:
            error = broke
        except RemoteProtocolError as violation:
            error = PeerDropped(str(violation))
            self.gate.ban(peer, violation)
        except Exception:
            _logger.exception("a frame from …%s could not be handled", short(peer))
            error = PeerUnreachable(f"The link to the peer …{short(peer)} failed; see the log.")
        finally:
            link.close()
            if neighbour is not None and neighbour.incoming is link and not self._stopping:
                self._lose(peer, neighbour, error)

    def _deliver(self, peer: PeerId, frame: Frame) -> None:
        if peer != self.local_peer:
            self._count_hidden(frame)
        for handler in self._handlers.get(frame.kind, ()):
            handler(peer, frame)

    def _deliver_local(self, frame: Frame) -> None:
        if not self._stopping:
            self._deliver(self.local_peer, frame)

    # Beginnings and endings

    def _linked(self, peer: PeerId) -> None:
        for handler in self._linked_handlers:
            handler(peer)

    def _lose(self, peer: PeerId, neighbour: Neighbour, error: PeerError) -> None:
        """Give the link up, both directions, and tell; what still opens may go on."""
        if isinstance(error, PeerSilent):
            self._transport.forget(peer)
        outgoing, incoming = neighbour.outgoing, neighbour.incoming
        lost = incoming is not None
        neighbour.incoming = None
        if incoming is not None:
            incoming.close()
        if outgoing is not None and (outgoing.is_up or outgoing.error is not None):
            lost = lost or outgoing.held_frames
            neighbour.outgoing = None
            outgoing.close()
        if neighbour.outgoing is None:
            wait_s = 0.0  # a stream that was up may break though nobody has died
            if outgoing is not None and not outgoing.was_up:
                wait_s = min(_RETRY_MIN_S * 2**neighbour.failures, _RETRY_MAX_S)
                neighbour.failures = min(neighbour.failures + 1, 16)
            neighbour.retry_at_s = self._clock.monotonic_s() + wait_s
            neighbour.last_error = str(error)
        if lost:
            _logger.info("lost …%s: %s", short(peer), error)
            for handler in self._lost_handlers:
                handler(peer, error)
