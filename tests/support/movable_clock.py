"""A clock whose days pass when a test says so."""

from __future__ import annotations

from engine.core.clock import SystemClock


class MovableClock(SystemClock):
    """The system's, some seconds ahead."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def unix_s(self) -> float:
        return super().unix_s() + self.ahead_s
