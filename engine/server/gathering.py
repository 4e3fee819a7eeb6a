"""Bringing the rows of a batch together into whole micro-batches. Pure.

Prompts of a batch are computed one after the other, so its rows set out on the ring in small groups,
and groups that never wait never merge. Where the stages' cores are the limit that costs half the
speed, because a pass with few rows reads as many weights as one with many. So now and then the first
stage holds a batch's rows for one round of the ring; what has come together stays together.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.ids import SessionId
from engine.server.scheduler import BatchKey

ROUNDS_BETWEEN = 16
"""Rounds from one gathering to the next: even a useless one costs a few percent."""
MAX_ROUNDS_BETWEEN = 1024
MAX_HOLD_S = 2.0
_MAX_BATCHES = 1024
_SMOOTHING = 0.25


@dataclass(slots=True)
class _Batch:
    scout: SessionId
    """The session whose rows show how long a round takes."""
    arrived_s: float
    round_s: float = 0.0
    hold_until_s: float = 0.0
    next_s: float = 0.0
    rounds_between: int = ROUNDS_BETWEEN
    passes: int = 0
    """Since the last gathering ended."""
    rounds: int = 0
    last_passes_a_round: float = float("inf")


class Gathering:
    """Says when the first stage holds rows back."""

    def __init__(self) -> None:
        self._batches: dict[BatchKey, _Batch] = {}

    def arrived(self, batch: BatchKey, session: SessionId, now_s: float) -> None:
        """Note a row that decodes."""
        known = self._batches.get(batch)
        if known is None:
            if len(self._batches) >= _MAX_BATCHES:
                del self._batches[min(self._batches, key=lambda k: self._batches[k].arrived_s)]
            self._batches[batch] = _Batch(session, now_s)
            return
        if session == known.scout:
            took_s = now_s - known.arrived_s
            known.round_s += (_SMOOTHING if known.round_s else 1.0) * (took_s - known.round_s)
            known.arrived_s = now_s
            known.rounds += 1
        elif now_s - known.arrived_s > 4 * max(known.round_s, 0.05):
            known.scout, known.arrived_s = session, now_s  # the other one has finished

    def took(self, batch: BatchKey) -> None:
        """Note that a pass has rows of this batch."""
        if (known := self._batches.get(batch)) is not None:
            known.passes += 1

    def may_go(self, batch: BatchKey, waiting_rows: int, pass_rows: int, now_s: float) -> bool:
        """Whether the rows that wait may go now.

        Args:
            batch: Theirs.
            waiting_rows: How many there are.
            pass_rows: Rows of a whole micro-batch.
            now_s: The time.
        """
        known = self._batches.get(batch)
        if waiting_rows >= pass_rows or known is None or not known.round_s:
            return True
        if now_s >= known.next_s and now_s >= known.hold_until_s:
            self._begin(known, now_s)
        return now_s >= known.hold_until_s

    @staticmethod
    def _begin(known: _Batch, now_s: float) -> None:
        passes_a_round = known.passes / max(1, known.rounds)
        # What did not lessen the passes is not tried again soon.
        useless = passes_a_round > 0.8 * known.last_passes_a_round
        known.rounds_between = (
            min(2 * known.rounds_between, MAX_ROUNDS_BETWEEN) if useless else ROUNDS_BETWEEN
        )
        known.last_passes_a_round = passes_a_round
        known.passes = known.rounds = 0
        known.hold_until_s = now_s + min(known.round_s, MAX_HOLD_S)
        known.next_s = known.hold_until_s + known.rounds_between * known.round_s
