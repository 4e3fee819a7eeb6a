"""Watches the machine and tells when to yield; `engine.policy` decides, the node obeys."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from engine.config import GuestConfig
from engine.policy.power import work_share
from engine.policy.readings import Reading
from engine.policy.yielding import Decision, Memory, decision, step
from engine.probes.reader import Reader

_logger = logging.getLogger(__name__)

EVERY_S = 2.0
"""Two readings that agree make a yield, so it begins within 5 s."""
_READING_LIMIT_S = 10.0
_SLEPT_S = 2.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the node knows when a reading is taken."""

    rules: GuestConfig
    metered: Literal["auto", "yes", "no"]
    worker_pid: int | None
    """Our process that computes, if there is one now."""
    in_swarm: bool


class Guest:
    """Reads the machine again and again.

    Args:
        reader: Takes one reading.
        facts: What the node knows now.
        obey: Told each decision; returns when it is carried out.
        wake: Called after the computer has slept, when a GPU may have forgotten its work.
        pace: Told in which share of the time the stage may compute.
    """

    def __init__(
        self,
        reader: Reader,
        facts: Callable[[], Facts],
        obey: Callable[[Decision], Awaitable[None]],
        wake: Callable[[], Awaitable[None]],
        pace: Callable[[float], None],
    ) -> None:
        self._reader = reader
        self._facts = facts
        self._obey = obey
        self._wake = wake
        self._pace = pace
        self._work_share = 1.0
        self._memory = Memory()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="probes")

    async def run(self) -> None:
        """Watch until cancelled."""
        slept_s = _slept_s()
        try:
            while True:
                try:
                    await self._look()
                    if _slept_s() > slept_s + _SLEPT_S:
                        slept_s = _slept_s()
                        _logger.info("the computer has slept")
                        await self._wake()
                except Exception:
                    _logger.exception("could not look whether to yield")
                await asyncio.sleep(EVERY_S)
        finally:
            self._thread.submit(self._reader.close)  # after a reading that may still run
            self._thread.shutdown(wait=False)

    async def _look(self) -> None:
        facts = self._facts()
        reading = await self._read(facts)
        if reading is not None:
            power_w = None if reading.gpu is None else reading.gpu.power_w
            self._work_share = work_share(self._work_share, power_w, facts.rules.gpu_max_w)
            self._pace(self._work_share)
            self._memory = step(self._memory, reading, facts.rules)
            await self._obey(decision(self._memory, reading))

    async def _read(self, facts: Facts) -> Reading | None:
        """A reading; None when a service hangs. Then the next one waits for the same thread."""
        metered = None if facts.metered == "auto" else facts.metered == "yes"

        def read() -> Reading:
            return self._reader.read(
                facts.rules, metered, facts.worker_pid, in_swarm=facts.in_swarm
            )

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_READING_LIMIT_S):
                return await loop.run_in_executor(self._thread, read)
        except TimeoutError:
            _logger.warning("the machine does not say whether somebody needs it")
            return None


def _slept_s() -> float:
    """How long the computer has slept since it started; 0 where the system does not tell."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None:
        return 0.0
    return time.clock_gettime(boottime) - time.clock_gettime(time.CLOCK_MONOTONIC)
