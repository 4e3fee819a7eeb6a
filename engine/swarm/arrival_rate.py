"""How many bytes a second a link really carries, as its receiver sees it. Pure.

A sender cannot know: what it writes fills buffers long before it has crossed. The receiver can. While
frames follow one another without a pause and are awaited, the line alone is what limits them: so many
bytes in the time from the first one's header to the end of the last.
"""

from __future__ import annotations

from collections import deque
from typing import Final

_PIECE_BYTES: Final = 256 << 10
_MEASURED_PIECE_BYTES: Final = 16 << 10
_MIN_WAIT_S: Final = 1e-4
"""Reading that took longer had to wait for the line; less is our own work."""
_MIN_TRAIN_S: Final = 3e-4
"""Less than this cannot be measured; lines on which it occurs are fast anyway."""
_MIN_TRAIN_BYTES: Final = 48 << 10
"""libp2p hands over up to 32 KiB at once, so that less says nothing. Were slow trains counted where
fast ones of the same size are not, every line would seem slow."""
_MAX_TRAIN_BYTES: Final = 512 << 10
_REST_S: Final = 0.2
"""Reading in small pieces costs, so not everything is measured."""
_SAMPLES: Final = 16
_MIN_SAMPLES: Final = 3
_QUANTILE: Final = 0.9
"""A connection's slow start, cross traffic and busy cores make samples too low; hardly anything makes
them too high."""


class ArrivalRate:
    """Told of every read of one stream; says how fast its line is."""

    def __init__(self) -> None:
        self.bytes_per_s = 0.0
        """The rate; 0 while unknown."""
        self._samples: deque[float] = deque(maxlen=_SAMPLES)
        self._rests_until_s = 0.0
        self._in_frame = False
        self._began_s: float | None = None
        """When the train began to arrive; None while nothing is measured."""
        self._num_bytes = 0
        """Of the train, after what had come at once."""
        self._ended_s = 0.0

    @property
    def piece_bytes(self) -> int:
        """The most that should be read at once."""
        # Once a piece has counted, all that follow it do, however large they are.
        looks_closely = self._began_s is not None and not self._num_bytes
        return _MEASURED_PIECE_BYTES if looks_closely else _PIECE_BYTES

    def read(self, began_s: float, ended_s: float, num_bytes: int) -> None:
        """Note a read; the first after `end_frame` is that of a header."""
        waited = ended_s - began_s >= _MIN_WAIT_S
        if not self._in_frame:
            self._in_frame = True
            if self._began_s is None and waited and ended_s >= self._rests_until_s:
                self._began_s = ended_s
                self._num_bytes = 0
                return
        if self._began_s is None:
            return
        # What was there at once had come together with the first header, or before we came to read;
        # so had some of the first piece that was not.
        if self._num_bytes:
            self._num_bytes += num_bytes
        elif waited:
            self._num_bytes = num_bytes // 2
        self._ended_s = ended_s

    def end_frame(self, *, more_follows: bool) -> bool:
        """Note the end of a frame.

        Args:
            more_follows: Its sender had another one ready.

        Returns:
            Whether the rate has changed by enough to tell the sender before its time.
        """
        self._in_frame = False
        if self._began_s is None or (more_follows and self._num_bytes < _MAX_TRAIN_BYTES):
            return False
        before, lasted_s = self.bytes_per_s, self._ended_s - self._began_s
        self._began_s = None
        if self._num_bytes < _MIN_TRAIN_BYTES:
            return False
        self._samples.append(self._num_bytes / max(_MIN_TRAIN_S, lasted_s))
        if len(self._samples) >= _MIN_SAMPLES:
            self.bytes_per_s = sorted(self._samples)[int(_QUANTILE * (len(self._samples) - 1))]
        now = self.bytes_per_s
        if now:
            self._rests_until_s = self._ended_s + _REST_S
        return bool(now) and (not before or not 0.8 < now / before < 1.25)
