"""Time as a dependency, so that tests and the simulator can own it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings of time, in seconds."""

    def monotonic_s(self) -> float:
        """Seconds that never go back; compare only with themselves."""
        ...

    def unix_s(self) -> float:
        """Seconds since 1970, as peers and records understand them."""
        ...


class SystemClock:
    """The machine's own clock."""

    def monotonic_s(self) -> float:
        """See `Clock`."""
        return time.monotonic()

    def unix_s(self) -> float:
        """See `Clock`."""
        return time.time()  # noqa: TID251 - the one place that may read the wall clock
