"""How long a token takes around a batch's route."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from engine.core.clock import Clock
from engine.core.ids import SessionId

WINDOW: Final = 12
"""So many tokens of each sequence are one measurement."""


class Stopwatch:
    """Measures how long a token takes around a batch's route, while all its sequences decode.

    Args:
        sessions: Those that have not finished.
        clock: Tells the time.
        report: Gets (rows, seconds) of each measurement.
    """

    def __init__(
        self, sessions: Iterable[SessionId], clock: Clock, report: Callable[[int, float], None]
    ) -> None:
        self._clock = clock
        self._report = report
        self._last_s: dict[SessionId, float | None] = dict.fromkeys(sessions)
        self._taken_s: list[float] = []

    def arrived(self, session: SessionId, *, is_last: bool) -> None:
        """A sequence has got its next token.

        Args:
            session: Which.
            is_last: It gets no more.
        """
        now_s, before_s = self._clock.monotonic_s(), self._last_s[session]
        self._last_s[session] = now_s
        rows = len(self._last_s)
        if before_s is not None and None not in self._last_s.values():
            self._taken_s.append(now_s - before_s)
        if len(self._taken_s) >= WINDOW * rows:
            # Tokens may come in bursts, so their mean counts, but for one step in which all waited.
            usual_s = sorted(self._taken_s)[: len(self._taken_s) - rows]
            self._report(rows, sum(usual_s) / len(usual_s))
            self._taken_s.clear()
        if is_last:  # from now on a step has fewer rows
            del self._last_s[session]
            self._taken_s.clear()
