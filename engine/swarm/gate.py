"""Whom we deal with: limits on incoming streams, and a while of silence for peers that misbehave."""

from __future__ import annotations

import logging

from engine.core.clock import Clock
from engine.core.errors import RemoteProtocolError
from engine.core.ids import PeerId, short

_logger = logging.getLogger(__name__)

MAX_STREAMS = 512
"""Incoming streams, all peers together."""
MAX_STREAMS_PER_PEER = 3
"""The one in use, one that replaces it, and one to spare."""
BAN_S = 30.0
"""For how long we have nothing to do with a peer that broke the rules."""
_MAX_BANS = 4096


class Gate:
    """Counts streams and remembers bans."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streams: dict[PeerId, int] = {}
        self._bans: dict[PeerId, tuple[float, str]] = {}
        self.violations = 0
        """Times that a peer broke the rules."""
        self.refused = 0
        """Streams turned away: banned peers, strangers, or too many."""

    def enter(self, peer: PeerId) -> bool:
        """Whether a stream of `peer` may be looked at; if so, `leave` when it has ended."""
        total, own = sum(self._streams.values()), self._streams.get(peer, 0)
        if self.ban_reason(peer) or total >= MAX_STREAMS or own >= MAX_STREAMS_PER_PEER:
            self.refused += 1
            return False
        self._streams[peer] = own + 1
        return True

    def leave(self, peer: PeerId) -> None:
        """Undo one `enter`."""
        self._streams[peer] -= 1
        if not self._streams[peer]:
            del self._streams[peer]

    def ban(self, peer: PeerId, violation: RemoteProtocolError) -> None:
        """Have nothing to do with `peer` for a while."""
        self.violations += 1
        _logger.warning("dropped …%s for %.0f s: %s", short(peer), BAN_S, violation)
        if len(self._bans) >= _MAX_BANS:  # a crowd of throw-away identities: forget the oldest
            del self._bans[next(iter(self._bans))]
        self._bans[peer] = self._clock.monotonic_s() + BAN_S, str(violation)

    def ban_reason(self, peer: PeerId) -> str:
        """Why `peer` is banned; empty when it is not."""
        until_s, reason = self._bans.get(peer, (0.0, ""))
        if reason and self._clock.monotonic_s() >= until_s:
            del self._bans[peer]
            return ""
        return reason
