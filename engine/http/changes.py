"""Changes that go on to their end although who asked for them has hung up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Changes:
    """A caller that hangs up cancels its handler, but a change once begun must not stop half-way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def finish(self, change: Coroutine[Any, Any, T]) -> T:
        """Do it, and wait as long as the caller does."""
        task = asyncio.create_task(change)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)
