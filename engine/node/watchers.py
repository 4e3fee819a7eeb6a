"""Those who want to see every change of the engine's status."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from engine.localapi.schema import EngineStatus

_EVERY_S: Final = 1.0
"""Counters in the status are at most this old for those who watch."""


class Watchers:
    """All of them.

    Args:
        status: The status now.
        ended: Set when there will be no more changes.
    """

    def __init__(self, status: Callable[[], EngineStatus], ended: asyncio.Event) -> None:
        self._status = status
        self._ended = ended
        self._changes: set[asyncio.Event] = set()

    def tell(self) -> None:
        """Something may have changed."""
        for changed in self._changes:
            changed.set()

    async def watch(self) -> AsyncIterator[EngineStatus]:
        """Yield the status now, then whenever it differs, until the end."""
        changed = asyncio.Event()
        self._changes.add(changed)
        shown: EngineStatus | None = None
        try:
            while not self._ended.is_set():
                status = self._status()
                if status != shown:
                    shown = status
                    yield status
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_EVERY_S):
                        await changed.wait()
                changed.clear()
        finally:
            self._changes.discard(changed)
