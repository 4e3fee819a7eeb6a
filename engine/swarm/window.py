"""How much prefill may be on its way to a peer at once. Pure.

Between our queue and the peer lie buffers of libp2p and TCP that would take megabytes, and a frame
that decodes cannot overtake there. So prefill leaves only while the line needs it to stay busy: what
travels in one round trip, and a little more.
"""

from __future__ import annotations

from typing import Final

_MIN_REPORT_BYTES: Final = 32 << 10
_REPORT_EVERY_S: Final = 0.005
_UNKNOWN_RATE_BYTES: Final = 2 << 20
_SLACK: Final = 1.25


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

    @property
    def is_full(self) -> bool:
        """Whether more would only wait on the way."""
        return self._sent_bytes - self._received_bytes >= self._limit_bytes

    def sent(self, num_bytes: int) -> None:
        """Note what has left."""
        self._sent_bytes += num_bytes

    def reported(self, received_bytes: int, rate_bytes_per_s: float, rtt_s: float) -> None:
        """Note what the receiver says.

        Args:
            received_bytes: All that has come since the stream began. Only ever grows, and is never
                more than has left, whatever a peer says.
            rate_bytes_per_s: At which large frames arrive; 0 while unknown.
            rtt_s: The shortest round trip of late.
        """
        self._received_bytes = min(max(self._received_bytes, received_bytes), self._sent_bytes)
        if rate_bytes_per_s:
            in_flight = _SLACK * rate_bytes_per_s * rtt_s
            self._limit_bytes = int(in_flight) + 3 * report_bytes(rate_bytes_per_s)
