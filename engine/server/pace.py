"""How fast a stage is: counters for the bench, and costs for scheduling and announcements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.core.generation import CompactionUse, ReplicaUse
from engine.server.scheduler import Work

_FORGET = 0.98
"""Weight of what was known, at each new pass."""
_USUAL_ROW_SHARE = 0.03
"""What a further row costs, as a share of a pass with one, where it has not been seen yet."""


@dataclass(slots=True)
class PassCost:
    """The time of a pass that only decodes, as a + b · rows, fitted to the recent ones.

    Each token of a draft counts as a row.
    """

    _weight: float = 0.0
    _rows: float = 0.0
    _rows2: float = 0.0
    _time_s: float = 0.0
    _product_s: float = 0.0

    def learn(self, rows: int, time_s: float) -> None:
        """Take in one pass."""
        for name, value in (
            ("_weight", 1.0),
            ("_rows", rows),
            ("_rows2", rows * rows),
            ("_time_s", time_s),
            ("_product_s", rows * time_s),
        ):
            setattr(self, name, getattr(self, name) * _FORGET + value)

    @property
    def base_s(self) -> float:
        """a, in seconds; 0 while nothing is known."""
        return self._fit()[0]

    @property
    def row_s(self) -> float:
        """b, in seconds."""
        return self._fit()[1]

    def of(self, rows: int) -> float:
        """Seconds for a pass of so many rows; 0 while nothing is known."""
        base_s, row_s = self._fit()
        return base_s + rows * row_s

    def _fit(self) -> tuple[float, float]:
        if not self._weight:
            return 0.0, 0.0
        mean_rows, mean_s = self._rows / self._weight, self._time_s / self._weight
        # The usual slope counts as much as one pass that had a row more than the mean.
        usual = mean_s * _USUAL_ROW_SHARE / (1 + _USUAL_ROW_SHARE * mean_rows)
        spread = self._rows2 / self._weight - mean_rows**2
        together = self._product_s / self._weight - mean_rows * mean_s
        row_s = (together + usual / self._weight) / (max(0.0, spread) + 1 / self._weight)
        row_s = min(max(0.0, row_s), mean_s / mean_rows)
        return mean_s - row_s * mean_rows, row_s


@dataclass(slots=True)
class Pace:
    """Totals since the stage started, in seconds, and how fast it may be."""

    work_share: float = 1.0
    """The share of the time in which passes may run; in the rest of it the device rests."""
    forwards: int = 0
    tokens: int = 0
    reused_tokens: int = 0
    """Tokens that need not be computed, because they had been before."""
    compute_s: float = 0.0
    cpu_s: float = 0.0
    """Processor time of the worker's threads."""
    replayed_tokens: int = 0
    """Tokens whose outputs were sent again from the record."""
    encode_s: float = 0.0
    wait_s: float = 0.0
    local_s: float = 0.0
    replica: ReplicaUse = field(default_factory=ReplicaUse)
    compaction: CompactionUse = field(default_factory=CompactionUse)

    def record(
        self,
        batch: Sequence[Work],
        *,
        compute_s: float,
        cpu_s: float,
        encode_s: float,
        wait_s: float,
        local_s: float,
    ) -> None:
        """Count one forward pass."""
        self.forwards += 1
        self.tokens += sum(work.row.count for work in batch)
        self.compute_s += compute_s
        self.cpu_s += cpu_s
        self.encode_s += encode_s
        self.wait_s += wait_s
        self.local_s += local_s
