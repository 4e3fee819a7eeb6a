"""How long a leased engine lives: as long as somebody needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

FIRST_S: Final = 60.0
"""A leased engine whose owner never comes, because it was killed meanwhile, ends after this."""
GRACE_S: Final = 1.0
"""A leased engine outlives its last lease by this: a reload of the window is no reason to end."""


class Leases:
    """Counts who needs the engine.

    Args:
        end: Called when nobody does any more.
        is_leased: Whether that is a reason to end at all.
    """

    def __init__(self, end: Callable[[], None], *, is_leased: bool) -> None:
        self._end = end
        self.is_leased = is_leased
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Expect the first one; it may have come, or gone, already."""
        if self._count == 0 and self._timer is None:
            self._end_after(FIRST_S)

    def opened(self) -> None:
        """Somebody needs the engine."""
        self._count += 1
        self.close()

    def closed(self) -> None:
        """Somebody needs it no more."""
        self._count -= 1
        if self._count == 0:
            self._end_after(GRACE_S)

    def close(self) -> None:
        """Let nothing end any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_after(self, wait_s: float) -> None:
        if self.is_leased:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._end)
