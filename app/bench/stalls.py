"""When the main thread is late, for how long, and in which function.

A timer beats on the main thread; the time between two beats, less what a beat takes, is how long
events had to wait. A second thread looks where the main thread is whenever a beat is late.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections import Counter
from types import FrameType

from PySide6.QtCore import QObject, Qt, QTimer

from app.bench.report import STALL_LIMIT_MS, Stalls

BEAT_MS = 5
LATE_MS = 15.0
"""A beat that is later is looked into."""
LOOK_EVERY_S = 0.005
KEPT_FUNCTIONS = 4
NOT_OURS = "app.bench"
NEVER_AWAY = (0.0, 0.0, "")
"""(ms, ms of computing, where) of the longest or the busiest stall so far."""


class StallWatch(QObject):
    """Watches the thread that it lives on, from `begin` to `end`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_beat)
        self._over = threading.Event()
        self._looker: threading.Thread | None = None
        self._main = threading.get_ident()
        self._begun_s = 0.0
        self._beat_s = 0.0
        self._busy_s = 0.0
        self._seen: list[str] = []
        """Where the main thread was, each time it was looked at since the last beat."""
        self._longest = self._busiest = NEVER_AWAY
        self._late_ms: list[float] = []
        """How late each late beat was."""

    def begin(self) -> None:
        """Forget what was and watch from now on."""
        self._longest = self._busiest = NEVER_AWAY
        self._late_ms, self._seen = [], []
        self._over.clear()
        self._begun_s = self._beat_s = time.monotonic()
        self._busy_s = time.thread_time()
        self._looker = threading.Thread(target=self._look, name="stalls", daemon=True)
        self._looker.start()
        self._timer.start()

    def end(self) -> Stalls:
        """Watch no longer. Returns what was seen."""
        self._on_beat()
        self._timer.stop()
        self._over.set()
        if self._looker is not None:
            self._looker.join()
        longest_ms, busy_ms, where = self._longest
        return Stalls(
            seconds=time.monotonic() - self._begun_s,
            longest_ms=longest_ms,
            busy_ms=busy_ms,
            where=where,
            busiest_ms=self._busiest[1],
            busiest_where=self._busiest[2],
            late=sum(ms > STALL_LIMIT_MS for ms in self._late_ms),
            median_ms=statistics.median(self._late_ms) if self._late_ms else 0.0,
        )

    def _on_beat(self) -> None:
        now_s, busy_s = time.monotonic(), time.thread_time()
        stall_ms = (now_s - self._beat_s) * 1000 - BEAT_MS
        busy_ms = (busy_s - self._busy_s) * 1000
        if stall_ms > self._longest[0] or busy_ms > self._busiest[1]:
            where = Counter(self._seen).most_common(1)[0][0] if self._seen else ""
            this = stall_ms, busy_ms, where
            self._longest = max(self._longest, this)
            self._busiest = max(self._busiest, this, key=lambda one: one[1])
        if stall_ms > LATE_MS:
            self._late_ms.append(stall_ms)
        self._seen.clear()
        self._beat_s, self._busy_s = now_s, busy_s

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            if (time.monotonic() - self._beat_s) * 1000 > LATE_MS:
                self._seen.append(_place(sys._current_frames().get(self._main)))


def _place(frame: FrameType | None) -> str:
    """The innermost functions of ours, `transcript._restack < transcript._draw`."""
    found: list[str] = []
    while frame is not None and len(found) < KEPT_FUNCTIONS:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("app.") and not module.startswith(NOT_OURS):
            found.append(f"{module.removeprefix('app.')}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return " < ".join(found)
