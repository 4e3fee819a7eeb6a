"""Takes samples of what the node does, for `engine.statistics`."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass

import psutil

from engine.core.clock import Clock
from engine.core.errors import EngineError
from engine.localapi.statistics import Range, Statistics
from engine.node.node import Node
from engine.profiler.gpus import Gpu, gpu_of
from engine.statistics import store
from engine.statistics.store import STEP_S, Sample
from engine.storage.database import Database

_logger = logging.getLogger(__name__)

EVERY_S = float(STEP_S[Range.HOUR])
WRITE_EVERY = 6
"""Samples: a disk need not wake up more than once a minute for them."""
_MAX_WAITING = 360
"""While the disk is full, older ones are lost."""


@dataclass(frozen=True, slots=True)
class _Counters:
    monotonic_s: float
    tokens_served: int
    tokens_used: int
    sent_bytes: int
    received_bytes: int


class Meter:
    """Samples of one node in one database."""

    def __init__(self, node: Node, database: Database, clock: Clock) -> None:
        self._node = node
        self._database = database
        self._clock = clock
        self._waiting: deque[Sample] = deque(maxlen=_MAX_WAITING)
        self._last = self._counters()
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        """Take samples until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.sample()
                if len(self._waiting) >= WRITE_EVERY:
                    await self.write()
            except EngineError as error:
                _logger.warning("statistics could not be kept: %s", error)
            except Exception:
                _logger.exception("no statistics could be taken")

    async def sample(self) -> None:
        """Take one now."""
        uuid = self._node.gpu_uuid
        gpu: Gpu | None = None if uuid is None else await asyncio.to_thread(gpu_of, uuid)
        last, now = self._last, self._counters()
        self._last = now
        self._waiting.append(
            Sample(
                unix_s=self._clock.unix_s(),
                seconds=now.monotonic_s - last.monotonic_s,
                tokens_served=_since(last.tokens_served, now.tokens_served),
                tokens_used=_since(last.tokens_used, now.tokens_used),
                sent_bytes=now.sent_bytes - last.sent_bytes,
                received_bytes=now.received_bytes - last.received_bytes,
                ram_bytes=psutil.Process().memory_info().rss + self._node.status().worker_rss_bytes,
                gpu_memory_bytes=None
                if gpu is None
                else gpu.memory_total_bytes - gpu.memory_free_bytes,
                gpu_busy_share=None if gpu is None else gpu.busy_share,
                gpu_c=None if gpu is None else gpu.temperature_c,
            )
        )

    async def write(self) -> None:
        """Keep the samples that were taken.

        Raises:
            EngineError: They cannot be written now; the next time may do better.
        """
        async with self._writing:
            samples = list(self._waiting)
            await self._database.write(lambda connection: store.add(connection, samples))
            for _ in samples:
                self._waiting.popleft()

    async def statistics(self, span: Range) -> Statistics:
        """The last hour, day or week.

        Raises:
            EngineError: The database cannot be read.
        """
        await self.sample()
        try:
            await self.write()
        except EngineError as error:  # what is kept can be seen though nothing more can be
            _logger.warning("statistics could not be kept: %s", error)
        unix_s = self._clock.unix_s()
        return await self._database.read(lambda connection: store.read(connection, span, unix_s))

    async def close(self) -> None:
        """Keep what is left."""
        try:
            await self.write()
        except EngineError as error:
            _logger.warning("the last statistics could not be kept: %s", error)

    def _counters(self) -> _Counters:
        status, line = self._node.status(), self._node.line
        return _Counters(
            self._clock.monotonic_s(),
            status.tokens_served,
            status.tokens_used,
            line.up.total_bytes,
            line.down.total_bytes,
        )


def _since(last: int, now: int) -> int:
    """What was counted since; a stage that began again counts from nothing."""
    return now - last if now >= last else now
