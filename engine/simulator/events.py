"""Virtual time: what happens when, in order; pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class EventQueue:
    """Runs actions at their times; of those at one time, first come first served."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, time_s: float, action: Callable[[], None]) -> None:
        """Do this then; a time that is past means now."""
        heapq.heappush(self._heap, (max(time_s, self.now_s), next(self._order), action))

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Do this so much later."""
        self.at(self.now_s + delay_s, action)

    def run(self, until_s: float) -> None:
        """Let time pass; what is due at `until_s` itself waits."""
        while self._heap and self._heap[0][0] < until_s:
            self.now_s, _, action = heapq.heappop(self._heap)
            action()
        self.now_s = until_s
