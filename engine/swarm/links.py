"""Links to other peers: the layer on which everything else sends and receives frames.

Each peer opens one long-lived stream to each peer that it sends to, so frames between two peers
travel over two streams, one per direction. A link is the pair: when either stream breaks, frames
may be lost, so the whole link is given up and `on_lost` tells. A frame to ourselves takes the same
path without a stream, so that one node alone runs the same code as a swarm.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from engine.config import LinkShape, SwarmConfig
from engine.core.clock import Clock
from engine.core.errors import (
    PeerDropped,
    PeerError,
    PeerSilent,
    PeerUnreachable,
    RemoteProtocolError,
)
from engine.core.ids import PeerId, short
from engine.core.reach import LinkPath
from engine.protocol.frames import ROW_KINDS, Frame, Kind
from engine.protocol.messages import LinkFacts
from engine.swarm.channel import Channel
from engine.swarm.faults import Faults
from engine.swarm.gate import Gate
from engine.swarm.handshake import Membership
from engine.swarm.incoming import IncomingLink, Refused
from engine.swarm.link_codec import CodecWork, IncomingCodec, OutgoingCodec
from engine.swarm.outgoing import OutgoingLink
from engine.swarm.shaper import Shaper
from engine.swarm.transport import ByteStream, Transport

_logger = logging.getLogger(__name__)

FrameHandler = Callable[[PeerId, Frame], None]
LostHandler = Callable[[PeerId, PeerError], None]

_RETRY_MIN_S = 0.5
_RETRY_MAX_S = 10.0
_MAX_NEIGHBOURS = 4096
"""Beyond it, those are forgotten that no link goes to or comes from."""


@dataclass(slots=True)
class _Neighbour:
    """What we know of one peer."""

    shaper: Shaper
    codec: OutgoingCodec
    addresses: tuple[str, ...] = ()
    outgoing: OutgoingLink | None = None
    incoming: IncomingLink | None = None
    failures: int = 0
    retry_at_s: float = 0.0
    last_error: str = ""

    @property
    def is_linked(self) -> bool:
        """Whether a link is there, or is being opened."""
        return self.outgoing is not None or self.incoming is not None


@dataclass(frozen=True, slots=True)
class OpenLink:
    """A link that works now, its way, and what it costs."""

    peer: PeerId
    path: LinkPath
    relay: PeerId | None
    """Who relays it."""
    rtt_s: float
    """Round trip, median of the last few."""
    bandwidth_bytes_per_s: float | None
    """As the peer has measured it on what we send; None while unknown."""
    sent_bytes: int
    """Of row frames, so far."""


class Links:
    """All links of this node. Everything but `start`, `stop` and `connect` returns at once."""

    def __init__(
        self, transport: Transport, config: SwarmConfig, clock: Clock, membership: Membership
    ) -> None:
        self._transport = transport
        self._config = config
        self._clock = clock
        self._membership = membership
        self._neighbours: OrderedDict[PeerId, _Neighbour] = OrderedDict()
        """The one unused for longest first."""
        self._handlers: dict[Kind, list[FrameHandler]] = {}
        self._lost_handlers: list[LostHandler] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._codec_work = CodecWork()
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

    def on_lost(self, handler: LostHandler) -> None:
        """Let `handler` know of every link that ended, and why."""
        self._lost_handlers.append(handler)

    def learn_addresses(self, peer: PeerId, addresses: Sequence[str]) -> None:
        """Where `peer` can be reached: plain or circuit multiaddrs."""
        if peer != self.local_peer:
            self._neighbour(peer).addresses = tuple(addresses)

    def send(self, peer: PeerId, frame: Frame) -> None:
        """Queue a frame, opening the link if there is none. Do not change its payload afterwards.

        Raises:
            PeerUnreachable: The peer is known to be gone, or too much is waiting for it.
            LocalProtocolError: The frame does not hold together.
        """
        if peer == self.local_peer:
            asyncio.get_running_loop().call_soon(self._deliver_local, frame)
            return
        neighbour = self._neighbour(peer)
        if neighbour.outgoing is None and self._clock.monotonic_s() < neighbour.retry_at_s:
            raise PeerUnreachable(neighbour.last_error)
        link = self._link(peer, neighbour)
        if frame.kind in ROW_KINDS and link.is_up and self._faults.strikes():
            link.close()
            return
        link.put(frame)
        self._count_hidden(frame)

    async def connect(self, peer: PeerId, addresses: Sequence[str] = ()) -> None:
        """Make sure of a working link.

        Raises:
            PeerUnreachable: The peer did not answer in time.
            StageRefused: We are no member of its swarm, or it is none of ours.
        """
        if peer == self.local_peer:
            return
        neighbour = self._neighbour(peer)
        if addresses:
            neighbour.addresses = tuple(addresses)
        link = self._link(peer, neighbour)
        await asyncio.shield(link.settled)
        if link.error is not None:
            raise link.error

    def rtt_s(self, peer: PeerId) -> float | None:
        """Round trip to `peer`, median of the last few; None while unknown."""
        if peer == self.local_peer:
            return 0.0
        neighbour = self._neighbours.get(peer)
        if neighbour is None or neighbour.outgoing is None:
            return None
        return neighbour.outgoing.rtt_s

    def one_way_s(self) -> dict[PeerId, float]:
        """Half the round trip to each peer that we have a working link to."""
        rtts_s = {peer: self.rtt_s(peer) for peer in sorted(self._neighbours)}
        return {peer: rtt_s / 2 for peer, rtt_s in rtts_s.items() if rtt_s is not None}

    def open_links(self) -> tuple[OpenLink, ...]:
        """The links that work now, by peer."""
        found = []
        for peer, neighbour in sorted(self._neighbours.items()):
            rtt_s, path = self.rtt_s(peer), self._transport.path(peer)
            if rtt_s is not None and path is not None:
                facts = neighbour.codec.facts()
                bandwidth = None if facts is None else facts.bandwidth_bytes_per_s
                sent_bytes = neighbour.codec.sent_row_bytes
                found.append(OpenLink(peer, *path, rtt_s, bandwidth, sent_bytes))
        return tuple(found)

    def clock_offset_s(self) -> float | None:
        """Our clock minus the linked peers', their median; None while no peer has told."""
        offsets = [
            neighbour.outgoing.clock_offset_s
            for neighbour in self._neighbours.values()
            if neighbour.outgoing is not None and neighbour.outgoing.clock_offset_s is not None
        ]
        return statistics.median(offsets) if offsets else None

    def queued_bytes(self, peer: PeerId) -> int:
        """What waits here to be sent to `peer`."""
        neighbour = self._neighbours.get(peer)
        return (
            0
            if neighbour is None or neighbour.outgoing is None
            else (neighbour.outgoing.queued_bytes)
        )

    def in_flight_bytes(self, peer: PeerId) -> int:
        """What is for `peer` and has not been reported to have arrived there."""
        neighbour = self._neighbours.get(peer)
        if neighbour is None or neighbour.outgoing is None:
            return 0
        return neighbour.outgoing.in_flight_bytes

    def sent_bytes(self) -> dict[PeerId, int]:
        """Bytes of row frames that have left so far, as they travelled, per peer."""
        return {
            peer: neighbour.codec.sent_row_bytes
            for peer, neighbour in self._neighbours.items()
            if neighbour.codec.sent_row_bytes
        }

    def link_facts(self) -> dict[PeerId, LinkFacts]:
        """How hidden states travel, per peer that has got any."""
        known = ((peer, n.codec.facts()) for peer, n in self._neighbours.items())
        return {peer: facts for peer, facts in known if facts is not None}

    def codec_s(self) -> float:
        """What encoding and decoding hidden states has taken so far, in seconds."""
        return self._codec_work.seconds

    # Outgoing

    def _neighbour(self, peer: PeerId) -> _Neighbour:
        if peer in self._neighbours:
            self._neighbours.move_to_end(peer)
        else:
            self._make_room()
            self._neighbours[peer] = self._new_neighbour(self._shaper(peer))
        return self._neighbours[peer]

    def _new_neighbour(self, shaper: Shaper) -> _Neighbour:
        mode, rate = self._config.codec, shaper.rate_bytes_per_s
        codec = OutgoingCodec(mode, rate, self._clock, self._codec_work)
        return _Neighbour(shaper, codec)

    def _shaper(self, peer: PeerId) -> Shaper:
        shape = self._config.shape
        return Shaper(LinkShape() if peer in shape.ideal_peers else shape, self._clock)

    def _count_hidden(self, frame: Frame) -> None:
        if frame.width:
            self.hidden_bytes += len(frame.payload)

    def _make_room(self) -> None:
        excess = len(self._neighbours) + 1 - _MAX_NEIGHBOURS
        if excess > 0:
            unlinked = (peer for peer, known in self._neighbours.items() if not known.is_linked)
            for peer in list(islice(unlinked, excess)):
                del self._neighbours[peer]

    def _link(self, peer: PeerId, neighbour: _Neighbour) -> OutgoingLink:
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
            task = asyncio.create_task(self._drive(peer, neighbour, link), name=f"link-{peer}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return neighbour.outgoing

    async def _drive(self, peer: PeerId, neighbour: _Neighbour, link: OutgoingLink) -> None:
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
        known = self._neighbours.get(peer)
        shaper = known.shaper if known else self._shaper(peer)
        channel = Channel(shaper.wrap(stream), self._config.dead_after_s)
        codec = IncomingCodec(self._clock, self._codec_work)
        link = IncomingLink(
            peer, self.local_peer, channel, self._membership, self._config, codec, self._clock
        )
        error = PeerUnreachable("Shoal is ending.")
        neighbour: _Neighbour | None = None
        try:
            await link.welcome()
            if peer not in self._neighbours:
                self._make_room()
                self._neighbours[peer] = known or self._new_neighbour(shaper)
            neighbour = self._neighbour(peer)
            if neighbour.incoming is not None:
                replaced = PeerUnreachable(f"The peer …{short(peer)} opened a new link.")
                self._lose(peer, neighbour, replaced)
            neighbour.incoming = link
            neighbour.failures, neighbour.retry_at_s = 0, 0.0
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

    # Endings

    def _lose(self, peer: PeerId, neighbour: _Neighbour, error: PeerError) -> None:
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
