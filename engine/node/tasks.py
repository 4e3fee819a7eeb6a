"""Ending a task that somebody else has begun."""

from __future__ import annotations

import asyncio
from typing import Any


async def end(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and wait; what it raises is not for us, and we do not wait for ourselves."""
    if task is not None and task is not asyncio.current_task():
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
