"""What the engine remembers and can tell of itself, for the local API."""

from __future__ import annotations

import asyncio
from typing import Any

from engine import __version__
from engine.localapi import diagnostics
from engine.localapi.running import Home
from engine.localapi.statistics import (
    DiagnosticsEntry,
    DiagnosticsPreview,
    LogTail,
    Range,
    Statistics,
)
from engine.node.meter import Meter
from engine.node.node import Node


class Past:
    """See `engine.http.past_routes.PastBackend`."""

    def __init__(self, home: Home, node: Node, meter: Meter) -> None:
        self._home = home
        self._node = node
        self._meter = meter

    async def statistics(self, span: Range) -> Statistics:
        """The last hour, day or week."""
        return await self._meter.statistics(span)

    async def log_tail(self, lines: int) -> LogTail:
        """The newest lines of the log, redacted."""
        found = await asyncio.to_thread(diagnostics.log_tail, self._home, lines)
        return LogTail(lines=found)

    async def diagnostics(self) -> DiagnosticsPreview:
        """What the archive would hold."""
        return DiagnosticsPreview(entries=await self._entries())

    async def diagnostics_archive(self) -> bytes:
        """The archive, a zip."""
        return await asyncio.to_thread(diagnostics.archive, await self._entries())

    async def _entries(self) -> tuple[DiagnosticsEntry, ...]:
        facts: dict[str, Any] = {
            "status": self._node.status().model_dump(mode="json"),
            "today": (await self._meter.statistics(Range.HOUR)).today.model_dump(mode="json"),
        }
        return await asyncio.to_thread(diagnostics.entries, self._home, __version__, facts)
