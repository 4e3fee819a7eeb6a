"""How many bytes may be on their way to a peer at once. Pure.

Between our queue and the peer lie buffers of libp2p and TCP that would take megabytes. A frame that
decodes cannot overtake there, and once they overflow, TCP halves its speed. So frames leave only
while the line needs them to stay busy: what it carries in one round trip, and a little more.
"""

from __future__ import annotations

from collections import deque
from typing import Final

_MIN_REPORT_BYTES: Final = 32 << 10
_REPORT_EVERY_S: Final = 0.005
_UNKNOWN_RATE_BYTES: Final = 2 << 20
_SPAN_S: Final = 0.05
"""Rates are taken over at least this long: single reports come in bursts."""
_REMEMBER_S: Final = 10.0
_GROWTH_REPORTS: Final = 3
"""What may be on its way beyond a round trip's worth: lets the rate grow to what the line carries."""


def report_bytes(rate_bytes_per_s: float) -> int:
    """After how many bytes a receiver tells what it has got.

    Args:
        rate_bytes_per_s: Of the line; 0 while unknown.
    """
    if not rate_bytes_per_s:
        return _UNKNOWN_RATE_BYTES // 8
    return max(_MIN_REPORT_BYTES, int(rate_bytes_per_s * _REPORT_EVERY_S))


class SendWindow:
    """The bytes of one stream that have left and not yet been reported to have arrived."""

    def __init__(self) -> None:
        self._sent_bytes = 0
        self._received_bytes = 0
        self._limit_bytes = _UNKNOWN_RATE_BYTES
        self._since: tuple[float, int] | None = None
        self._rates: deque[tuple[float, float]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether more would only wait on the way."""
        return self._sent_bytes - self._received_bytes >= self._limit_bytes

    def sent(self, num_bytes: int) -> None:
        """Note what has left."""
        self._sent_bytes += num_bytes

    def reported(self, received_bytes: int, rtt_s: float, now_s: float) -> None:
        """Note what the receiver says.

        Args:
            received_bytes: All that has come since the stream began. Only ever grows, and is never
                more than has left, whatever a peer says.
            rtt_s: The shortest round trip of late.
            now_s: When it was said.
        """
        received_bytes = min(max(self._received_bytes, received_bytes), self._sent_bytes)
        self._received_bytes = received_bytes
        if self._since is None:
            self._since = now_s, received_bytes
            return
        since_s, before_bytes = self._since
        if now_s - since_s < max(_SPAN_S, rtt_s):
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
        self._limit_bytes = int(best * rtt_s) + _GROWTH_REPORTS * report_bytes(best)
