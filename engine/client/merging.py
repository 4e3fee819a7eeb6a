"""Several streams of events as one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _End:
    error: Exception | None


async def merged(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    """Give what the streams give, as it comes, until all have ended; they are closed at the end.

    What one of them raises ends all, when what has come before is given.
    """
    come: asyncio.Queue[T | _End] = asyncio.Queue()

    async def read(stream: AsyncGenerator[T, None]) -> None:
        error: Exception | None = None
        try:
            async with contextlib.aclosing(stream) as events:
                async for event in events:
                    come.put_nowait(event)
        except Exception as raised:  # noqa: BLE001 - raised again by who reads
            error = raised
        come.put_nowait(_End(error))

    readers = [asyncio.create_task(read(stream), name="chain") for stream in streams]
    try:
        running = len(readers)
        while running:
            item = await come.get()
            if not isinstance(item, _End):
                yield item
                continue
            running -= 1
            if item.error is not None:
                raise item.error
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
