"""Who wants to know which jobs have changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

COALESCE_S: Final = 0.5


class Watchers:
    """All of them."""

    def __init__(self) -> None:
        self._watchers: set[_Watcher] = set()

    def tell(self, job_id: str) -> None:
        """A job has changed, or is gone."""
        for watcher in self._watchers:
            watcher.ids.add(job_id)
            watcher.event.set()

    async def watch(self) -> AsyncIterator[set[str]]:
        """Ids of jobs that have changed, collected over half a second, until closed."""
        watcher = _Watcher()
        self._watchers.add(watcher)
        try:
            while True:
                await watcher.event.wait()
                await asyncio.sleep(COALESCE_S)
                watcher.event.clear()
                ids, watcher.ids = watcher.ids, set()
                yield ids
        finally:
            self._watchers.discard(watcher)


class _Watcher:
    """Somebody who wants to know."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.event = asyncio.Event()
