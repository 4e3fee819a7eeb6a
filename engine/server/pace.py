"""How fast this stage is: counters for the bench, and rates for scheduling and announcements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.protocol.frames import DECODE_TOKENS
from engine.server.scheduler import Work

_SMOOTHING = 0.1
"""Weight of the newest pass in the running means."""
_MIN_CHUNK_TOKENS = 16


@dataclass(slots=True)
class Pace:
    """Totals since the stage started, in seconds, and smoothed rates."""

    forwards: int = 0
    tokens: int = 0
    compute_s: float = 0.0
    cpu_s: float = 0.0
    encode_s: float = 0.0
    wait_s: float = 0.0
    local_s: float = 0.0
    decode_step_s: float = 0.0
    """Smoothed time of a pass that only decodes."""
    prefill_tokens_per_s: float = 0.0

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
        tokens = sum(work.row.count for work in batch)
        self.forwards += 1
        self.tokens += tokens
        self.compute_s += compute_s
        self.cpu_s += cpu_s
        self.encode_s += encode_s
        self.wait_s += wait_s
        self.local_s += local_s
        if all(work.row.count <= DECODE_TOKENS for work in batch):
            self.decode_step_s = _smooth(self.decode_step_s, compute_s)
        elif tokens >= 2 * _MIN_CHUNK_TOKENS:
            self.prefill_tokens_per_s = _smooth(self.prefill_tokens_per_s, tokens / compute_s)

    def prefill_chunk_tokens(self) -> int:
        """Prefill tokens that take about as long as one decode step."""
        return max(_MIN_CHUNK_TOKENS, int(self.prefill_tokens_per_s * self.decode_step_s))


def _smooth(old: float, new: float) -> float:
    return new if not old else old + _SMOOTHING * (new - old)
