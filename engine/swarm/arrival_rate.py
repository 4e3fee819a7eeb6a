"""How many bytes a second a link really carries, as its receiver sees it.

A sender cannot know: what it writes fills buffers long before it has crossed. The receiver can: from
when a large frame begins to arrive until its end, the line is what limits it. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

PIECE_BYTES: Final = 16 << 10
"""Frames that are measured are read in pieces of this size."""
_MIN_FRAME_BYTES: Final = 48 << 10
"""libp2p hands over up to 32 KiB at once, so that less says nothing."""
_MIN_WAIT_S: Final = 1e-4
"""Reading that took longer had to wait for the line; less is our own work."""
_SAMPLES: Final = 16
_MIN_SAMPLES: Final = 3
_QUANTILE: Final = 0.75
"""Cross traffic and a connection's slow start make samples too low far more often than anything
makes them too high."""


class ArrivalRate:
    """The rate of one stream, from its last large frames."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_SAMPLES)

    @property
    def bytes_per_s(self) -> float:
        """The rate; 0 while unknown."""
        ordered = sorted(self._samples)
        return ordered[int(_QUANTILE * (len(ordered) - 1))] if len(ordered) >= _MIN_SAMPLES else 0.0

    @staticmethod
    def is_worth_measuring(header_wait_s: float, body_bytes: int) -> bool:
        """Whether a frame can be measured: large, and awaited when it began to arrive."""
        return header_wait_s >= _MIN_WAIT_S and body_bytes >= _MIN_FRAME_BYTES

    def add(self, pieces: Sequence[tuple[float, float, int]]) -> bool:
        """Note one frame.

        Args:
            pieces: Of the body, in order: when reading it began and ended, and its bytes. What was
                there at once had come together with the header, or before we came to read it, and
                says nothing of the line.

        Returns:
            Whether the rate has changed by enough to tell the sender before its time.
        """
        before = self.bytes_per_s
        began_s = pieces[0][0]
        waits = [ended - began >= _MIN_WAIT_S for began, ended, _ in pieces]
        if not any(waits):
            return False
        num_bytes = sum(size for *_, size in pieces[waits.index(True) :])
        self._samples.append(num_bytes / (pieces[-1][1] - began_s))
        now = self.bytes_per_s
        return bool(now) and (not before or not 0.8 < now / before < 1.25)
