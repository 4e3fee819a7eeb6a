"""Whether the connection costs by the byte, as the system sees it, or as the person says."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from engine.core.clock import Clock
from engine.probes.senses import senses

_FRESH_S: Final = 60.0


class Metered:
    """Asks when somebody wants to know, and remembers for a minute."""

    def __init__(self, setting: Literal["auto", "yes", "no"], clock: Clock) -> None:
        self._setting = setting
        self._clock = clock
        self._known: tuple[float, bool | None] | None = None
        self._asking = asyncio.Lock()

    async def ask(self) -> bool | None:
        """Whether it is; None when nobody says."""
        if self._setting != "auto":
            return self._setting == "yes"
        async with self._asking:
            now_s = self._clock.monotonic_s()
            if self._known is None or now_s - self._known[0] > _FRESH_S:
                self._known = now_s, await asyncio.to_thread(_system_says)
            return self._known[1]


def _system_says() -> bool | None:
    asked = senses()
    try:
        return asked.is_metered()
    finally:
        asked.close()
