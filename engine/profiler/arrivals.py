"""How fast filler comes in. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from engine.protocol.probes import MAX_RATES, Filler, Phase


@dataclass(slots=True)
class Arrivals:
    """One train of filler, frame by frame."""

    request: int
    times_s: list[float] = field(default_factory=list)
    sizes_bytes: list[int] = field(default_factory=list)
    steady_from: int | None = None
    """The first frame that was sent when the rate no longer grew."""
    is_steady: bool = False

    def add(self, filler: Filler, num_bytes: int, now_s: float) -> None:
        """Note a frame."""
        if filler.phase is Phase.STEADY and self.steady_from is None:
            self.steady_from = len(self.times_s)
        self.times_s.append(now_s)
        self.sizes_bytes.append(num_bytes)
        self.is_steady = filler.phase is Phase.LAST

    def rates_bytes_per_s(self) -> tuple[float, ...]:
        """Over equal pieces of the steady part, or of the second half where there is none.

        A frame counts from the arrival of the one before it: how long the first was under way is
        not known. Empty when less than three frames came.
        """
        count = len(self.times_s)
        first = count // 2 if self.steady_from is None else self.steady_from
        first = min(first, count - 3)
        if first < 0:
            return ()
        gaps = count - 1 - first
        pieces = min(MAX_RATES, max(1, gaps // 2))
        marks = [first + round(gaps * piece / pieces) for piece in range(pieces + 1)]
        rates = []
        for begin, end in pairwise(marks):
            lasted_s = max(1e-6, self.times_s[end] - self.times_s[begin])
            rates.append(sum(self.sizes_bytes[begin + 1 : end + 1]) / lasted_s)
        return tuple(rates)


def mean_rate(rates: Sequence[float]) -> float:
    """Of equal pieces, all together: a pause of the receiver only moves bytes between them."""
    return statistics.harmonic_mean(rates)
