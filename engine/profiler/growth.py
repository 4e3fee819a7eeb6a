"""How much filler may be on its way at once: as little as keeps the line busy. Pure.

What is on its way beyond that lies in buffers, where it holds up everybody else's bytes. So it begins
small and doubles with each round trip, as TCP does, as long as more also arrives faster; then it
stays.
"""

from __future__ import annotations

from typing import Final

_BEGIN_BYTES: Final = 64 << 10
_MOST_BYTES: Final = 8 << 20
_FASTER: Final = 1.2
"""Less growth than this is noise."""
_ROUND_BYTES: Final = 96 << 10
"""Receivers report every 32 to 128 KiB, so rates over less say little …"""
_MIN_ROUND_S: Final = 0.02
_MAX_ROUND_S: Final = 0.5
"""… but on slow lines that takes too long."""
_GROWTH: Final = (1.0, 0.3)
"""Of what has arrived, after so many rounds without growth: one alone may have been noise."""
_STEADY_ROUNDS: Final = 3
"""In a row without growth."""


class Growth:
    """Watches what arrives of one train.

    Args:
        rtt_s: A round trip, before the train.
        now_s: When it begins.
    """

    def __init__(self, rtt_s: float, now_s: float) -> None:
        self._min_round_s = max(rtt_s, _MIN_ROUND_S)
        self._round_began = (now_s, 0)
        self._arrived_bytes = 0
        self._best_bytes_per_s = 0.0
        self._rounds_without = 0
        self.limit_bytes = _BEGIN_BYTES
        """May be on its way."""
        self.steady_since_s: float | None = None
        """When the rate had stopped growing; None: it still may."""

    def arrived(self, num_bytes: int, now_s: float) -> None:
        """Note how much of the train has arrived so far."""
        if self._rounds_without < len(_GROWTH):
            more = (num_bytes - self._arrived_bytes) * _GROWTH[self._rounds_without]
            self.limit_bytes = min(self.limit_bytes + int(more), _MOST_BYTES)
        self._arrived_bytes = num_bytes
        began_s, before_bytes = self._round_began
        lasted_s, came_bytes = now_s - began_s, num_bytes - before_bytes
        is_long = lasted_s >= self._min_round_s and came_bytes >= _ROUND_BYTES
        if self.steady_since_s is not None or not (is_long or lasted_s >= _MAX_ROUND_S):
            return
        self._round_began = (now_s, num_bytes)
        rate = came_bytes / lasted_s
        if rate > _FASTER * self._best_bytes_per_s:
            self._best_bytes_per_s = rate
            self._rounds_without = 0
            return
        self._rounds_without += 1
        if self._rounds_without == _STEADY_ROUNDS:
            self.steady_since_s = now_s
