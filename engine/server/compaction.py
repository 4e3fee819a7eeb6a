"""What is kept of trees is brought together, [BB] §7.3: behind the answer that must not wait for it."""

from __future__ import annotations

import time

from engine.core.generation import CompactionUse
from engine.server.cached_sequence import CachedSequence


class Compaction:
    """Of one stage."""

    def __init__(self) -> None:
        self._waiting: list[CachedSequence] = []
        self._use = CompactionUse()

    def put_off(self, sequence: CachedSequence) -> None:
        """Leave a sequence's tokens scattered until `catch_up`."""
        self._waiting.append(sequence)

    def gather(self, sequence: CachedSequence) -> None:
        """Bring a sequence's tokens together now, because its pass needs it."""
        begun_s = time.perf_counter()
        sequence.gather()
        self._use += CompactionUse(before=1, before_s=time.perf_counter() - begun_s)

    def catch_up(self) -> None:
        """Bring together all that was put off."""
        if not self._waiting:
            return
        begun_s = time.perf_counter()
        for sequence in self._waiting:
            sequence.gather()
        taken_s = time.perf_counter() - begun_s
        self._use += CompactionUse(after=len(self._waiting), after_s=taken_s)
        self._waiting.clear()

    def take_use(self) -> CompactionUse:
        """What was done since the last time."""
        use, self._use = self._use, CompactionUse()
        return use
