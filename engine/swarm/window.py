"""How many bytes may be on their way to a peer before prefill has to wait. Pure.

Between our queue and the peer lie buffers of libp2p and TCP that would take megabytes, and a frame
that decodes cannot overtake there. So prefill leaves only while the line needs it to stay busy: what
it carries in one round trip, and a little more.
"""

from __future__ import annotations

from collections import deque
from typing import Final

_MIN_REPORT_BYTES: Final = 32 << 10
_MAX_REPORT_BYTES: Final = 256 << 10
"""Half of the least that may be on its way, or the sender would come to a stop."""
REPORT_REST_BYTES: Final = 16 << 10
"""A receiver also tells of so much when nothing more comes: the sender may be waiting for that."""
REPORT_REST_AFTER_S: Final = 0.01
_REPORT_EVERY_S: Final = 0.005
_MIN_LIMIT_BYTES: Final = 512 << 10
"""Below that, libp2p's own flow control leaves lines idle that are long or slow."""
_SPAN_S: Final = 0.5
"""Rates are taken over at least this long: after a lost packet, what came meanwhile comes at once."""
_SPAN_RTTS: Final = 2
_REMEMBER_S: Final = 15.0
_GROWTH_REPORTS: Final = 3
"""What may be on its way beyond a round trip's worth: lets the rate grow to what the line carries."""


def report_bytes(rate_bytes_per_s: float) -> int:
    """After how many bytes a receiver tells what it has got.

    Args:
        rate_bytes_per_s: Of the line; 0 while unknown.
    """
    return min(max(_MIN_REPORT_BYTES, int(rate_bytes_per_s * _REPORT_EVERY_S)), _MAX_REPORT_BYTES)


class SendWindow:
    """The bytes of one stream that have left and not yet been reported to have arrived."""

    def __init__(self) -> None:
        self._sent_bytes = 0
        self._received_bytes = 0
        self._limit_bytes = _MIN_LIMIT_BYTES
        self._rtt_s = float("inf")
        """The shortest ever: later ones include the wait in buffers that this is to keep empty."""
        self._since: tuple[float, int] | None = None
        self._rates: deque[tuple[float, float]] = deque()

    @property
    def in_flight_bytes(self) -> int:
        """What has left and not been reported."""
        return self._sent_bytes - self._received_bytes

    @property
    def is_full(self) -> bool:
        """Whether more prefill would only wait on the way."""
        return self.in_flight_bytes >= self._limit_bytes

    def sent(self, num_bytes: int) -> None:
        """Note what has left."""
        self._sent_bytes += num_bytes

    def reported(self, received_bytes: int, rtt_s: float, now_s: float) -> None:
        """Note what the receiver says.

        Args:
            received_bytes: All that has come since the stream began. Only ever grows, and is never
                more than has left, whatever a peer says.
            rtt_s: A round trip.
            now_s: When it was said.
        """
        received_bytes = min(max(self._received_bytes, received_bytes), self._sent_bytes)
        self._received_bytes = received_bytes
        if self._since is None:
            self._since = now_s, received_bytes
            return
        since_s, before_bytes = self._since
        self._rtt_s = min(self._rtt_s, rtt_s)
        if now_s - since_s < max(_SPAN_S, _SPAN_RTTS * self._rtt_s):
            return
        self._since = now_s, received_bytes
        rate = (received_bytes - before_bytes) / (now_s - since_s)
        # The highest of late: a sender that has little to send sees less than the line carries.
        while self._rates and (self._rates[0][0] < now_s - _REMEMBER_S):
            self._rates.popleft()
        while self._rates and self._rates[-1][1] <= rate:
            self._rates.pop()
        self._rates.append((now_s, rate))
        best = self._rates[0][1]
        needed_bytes = int(best * self._rtt_s) + _GROWTH_REPORTS * report_bytes(best)
        self._limit_bytes = max(_MIN_LIMIT_BYTES, needed_bytes)
