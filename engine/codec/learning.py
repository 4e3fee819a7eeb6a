"""A sender's references: learned from its own rows, reviewed from time to time. Pure.

One link mostly carries the rows of one stage boundary, but another route may leave a stage at an
earlier block. So rows are sampled again and again: rarely, since a reference saves a few percent.
"""

from __future__ import annotations

from typing import Final

from engine.codec.lanes import ElementType
from engine.codec.reference import MAX_KNOWN_REFERENCES, Reference, high_lane_share, learn_reference

_FIRST_ROWS: Final = 64
"""Enough for most of the gain; the next sample refines it."""
_SAMPLE_ROWS: Final = 512
_REST_ROWS: Final = 16384
"""Rows that pass between one sample and the next."""
_MAX_SAMPLE_BYTES: Final = 4 << 20
_WORSE: Final = 1.03
"""Rows that take this much more than those of the last sample come from another boundary."""


class ReferenceLearner:
    """Takes samples of rows of one type and width; `review` makes references of them."""

    def __init__(self, dtype: ElementType, width: int) -> None:
        self.kind: Final = (dtype, width)
        self.current: Reference | None = None
        """What to encode with."""
        self._row_bytes: Final = width * dtype.num_bytes
        self._known: list[Reference] = []
        self._sample = bytearray()
        self._resting_rows = 0
        self._reviews = 0
        self._expected_share = 1.0

    @property
    def has_sample(self) -> bool:
        """Whether `review` has something to do."""
        return len(self._sample) >= self._goal_rows() * self._row_bytes

    def take(self, payload: bytes | memoryview) -> None:
        """Look at rows that are about to be sent, [N, D] packed; copied where they are wanted."""
        if self._resting_rows > 0:
            self._resting_rows -= len(payload) // self._row_bytes
        elif not self.has_sample:
            missing = self._goal_rows() * self._row_bytes - len(self._sample)
            self._sample += memoryview(payload)[:missing]

    def review(self) -> None:
        """Choose or learn the reference for rows like the sample; tens of milliseconds.

        Meant for another thread than `take`'s, which leaves a full sample alone.
        """
        sample = bytes(self._sample)
        best, best_share = None, high_lane_share(None, sample, *self.kind)
        for known in self._known:
            share = high_lane_share(known, sample, *self.kind)
            if share < best_share:
                best, best_share = known, share
        if self._reviews < 2 or best_share > _WORSE * self._expected_share:
            learned = learn_reference(sample, *self.kind)
            share = high_lane_share(learned, sample, *self.kind)
            if share < best_share:
                best, best_share = learned, share
                self._known = [*self._known, learned][-MAX_KNOWN_REFERENCES:]
        self.current, self._expected_share = best, best_share
        self._resting_rows = _REST_ROWS if self._reviews else 0
        self._reviews += 1
        self._sample = bytearray()

    def _goal_rows(self) -> int:
        most = max(1, _MAX_SAMPLE_BYTES // self._row_bytes)
        return min(_SAMPLE_ROWS if self._reviews else _FIRST_ROWS, most)
