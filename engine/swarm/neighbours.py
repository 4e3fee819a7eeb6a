"""The peers that this node knows: their links, their lines, and what both have shown so far."""

from __future__ import annotations

import math
import statistics
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from engine.config import LinkShape, SwarmConfig
from engine.core.clock import Clock
from engine.core.ids import PeerId
from engine.core.reach import LinkPath
from engine.protocol.messages import LinkFacts
from engine.swarm.incoming import IncomingLink
from engine.swarm.link_codec import CodecWork, OutgoingCodec
from engine.swarm.outgoing import OutgoingLink
from engine.swarm.shaper import Shaper
from engine.swarm.transport import Transport

_MAX_NEIGHBOURS = 4096
"""Beyond it, those are forgotten that no link goes to or comes from."""


@dataclass(slots=True)
class Neighbour:
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


class Neighbours:
    """All of them, few enough whoever knocks, and figures of their links."""

    def __init__(
        self, transport: Transport, config: SwarmConfig, clock: Clock, codec_work: CodecWork
    ) -> None:
        self._transport = transport
        self._config = config
        self._clock = clock
        self._codec_work = codec_work
        self._known: OrderedDict[PeerId, Neighbour] = OrderedDict()
        """The one unused for longest first."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, peer: PeerId) -> Neighbour | None:
        """What is known of a peer, if anything is."""
        return self._known.get(peer)

    def of(self, peer: PeerId) -> Neighbour:
        """What is known of a peer; from now on it is one of them."""
        if peer in self._known:
            self._known.move_to_end(peer)
        else:
            self.add(peer, self.new(self.shaper(peer)))
        return self._known[peer]

    def add(self, peer: PeerId, neighbour: Neighbour) -> None:
        """Know a peer from now on."""
        self._make_room()
        self._known[peer] = neighbour

    def new(self, shaper: Shaper) -> Neighbour:
        """One that nothing is known of yet."""
        mode, rate = self._config.codec, shaper.rate_bytes_per_s
        codec = OutgoingCodec(mode, rate, self._clock, self._codec_work)
        return Neighbour(shaper, codec)

    def shaper(self, peer: PeerId) -> Shaper:
        """What shapes a new line to a peer."""
        shape = self._config.shape
        return Shaper(LinkShape() if peer in shape.ideal_peers else shape, self._clock)

    def _make_room(self) -> None:
        excess = len(self._known) + 1 - _MAX_NEIGHBOURS
        if excess > 0:
            unlinked = (peer for peer, known in self._known.items() if not known.is_linked)
            for peer in list(islice(unlinked, excess)):
                del self._known[peer]

    # Figures

    def rtt_s(self, peer: PeerId) -> float | None:
        """Round trip to `peer`, median of the last few; None while unknown."""
        if peer == self._transport.local_peer:
            return 0.0
        neighbour = self._known.get(peer)
        if neighbour is None or neighbour.outgoing is None:
            return None
        return neighbour.outgoing.rtt_s

    def one_way_s(self) -> dict[PeerId, float]:
        """Half the round trip to each peer that we have a working link to."""
        rtts_s = {peer: self.rtt_s(peer) for peer in sorted(self._known)}
        return {peer: rtt_s / 2 for peer, rtt_s in rtts_s.items() if rtt_s is not None}

    def open_links(self) -> tuple[OpenLink, ...]:
        """The links that work now, by peer."""
        found = []
        for peer, neighbour in sorted(self._known.items()):
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
            for neighbour in self._known.values()
            if neighbour.outgoing is not None and neighbour.outgoing.clock_offset_s is not None
        ]
        return statistics.median(offsets) if offsets else None

    def queued_bytes(self, peer: PeerId) -> int:
        """What waits here to be sent to `peer`."""
        neighbour = self._known.get(peer)
        if neighbour is None or neighbour.outgoing is None:
            return 0
        return neighbour.outgoing.queued_bytes

    def in_flight_bytes(self, peer: PeerId) -> int:
        """What is for `peer` and has not been reported to have arrived there."""
        neighbour = self._known.get(peer)
        if neighbour is None or neighbour.outgoing is None:
            return 0
        return neighbour.outgoing.in_flight_bytes

    def sent_bytes(self) -> dict[PeerId, int]:
        """Bytes of row frames that have left so far, as they travelled, per peer."""
        return {
            peer: neighbour.codec.sent_row_bytes
            for peer, neighbour in self._known.items()
            if neighbour.codec.sent_row_bytes
        }

    def link_facts(self) -> dict[PeerId, LinkFacts]:
        """How hidden states travel, per peer that has got any."""
        known = ((peer, n.codec.facts()) for peer, n in self._known.items())
        return {peer: facts for peer, facts in known if facts is not None}

    def token_s(self, peer: PeerId, row_bytes: int) -> float:
        """What hidden states of so many bytes take on the link to a peer; 0 while nobody knows."""
        neighbour = self._known.get(peer)
        facts = None if neighbour is None else neighbour.codec.facts()
        if facts is None or not facts.bandwidth_bytes_per_s:
            return 0.0
        return row_bytes * facts.ratio / facts.bandwidth_bytes_per_s

    def uplink_bytes_per_s(self, peer: PeerId) -> float:
        """What our line to a peer carries, by it or else by who has seen most of ours; 0: unknown."""
        rates = {p: n.codec.bandwidth_bytes_per_s or 0.0 for p, n in self._known.items()}
        return self._of_line(peer, rates)

    def downlink_bytes_per_s(self, peer: PeerId) -> float:
        """The same of the line from a peer to us."""
        links = {p: n.incoming for p, n in self._known.items()}
        rates = {p: link.bytes_per_s if link is not None else 0.0 for p, link in links.items()}
        return self._of_line(peer, rates)

    def _of_line(self, peer: PeerId, rates: Mapping[PeerId, float]) -> float:
        if peer == self._transport.local_peer:
            return math.inf
        return rates.get(peer) or max(rates.values(), default=0.0)

    def codec_s(self) -> float:
        """What encoding and decoding hidden states has taken so far, in seconds."""
        return self._codec_work.seconds
