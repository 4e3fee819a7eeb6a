"""The watch over the machine, with senses that a test speaks for."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pynvml
import pytest

from engine.config import GuestConfig
from engine.core.clock import SystemClock
from engine.node.guest import Facts, Guest
from engine.probes.gpu import GpuProbe
from engine.probes.reader import Reader


class Senses:
    """A machine that nobody uses."""

    def on_battery(self) -> bool | None:
        return False

    def is_metered(self) -> bool | None:
        return False

    def in_game_mode(self) -> bool | None:
        return False

    def full_screen(self) -> str | None:
        return None

    def user_idle_s(self) -> float | None:
        return None

    def close(self) -> None:
        pass


@asynccontextmanager
async def watching(gpu: GpuProbe | None = None, **rules):
    """The watch, and what it has told: decisions, wakings, shares of time."""
    told = SimpleNamespace(decisions=[], wakings=0, shares=[], looked=asyncio.Event())

    async def obey(decision):
        told.decisions.append(decision)
        told.looked.set()

    async def wake():
        told.wakings += 1

    def pace(share):
        told.shares.append(share)

    facts = Facts(GuestConfig.model_validate(rules), "no", None, in_swarm=True)
    guest = Guest(Reader(Senses(), gpu, SystemClock()), lambda: facts, obey, wake, pace)
    running = asyncio.create_task(guest.run())
    try:
        yield told
    finally:
        running.cancel()
        await asyncio.wait({running})


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="needs Linux's clock of sleep")
@pytest.mark.parametrize(("slept_s", "wakings"), [(600.0, 1), (0.0, 0)])
async def test_after_the_computer_has_slept_the_worker_is_begun_again(
    monkeypatch, slept_s, wakings
):
    awake_since_s = {time.CLOCK_BOOTTIME: 0.0, time.CLOCK_MONOTONIC: 0.0}
    monkeypatch.setattr(time, "clock_gettime", lambda clock: awake_since_s[clock])
    async with watching() as told:
        await asyncio.sleep(0)  # it has noted how long the computer had slept before
        awake_since_s[time.CLOCK_BOOTTIME] += slept_s
        await told.looked.wait()
        await asyncio.sleep(0)
        assert told.wakings == wakings
        assert told.decisions[0].runs


@pytest.mark.parametrize(("cap_w", "share"), [(100.0, 0.5), (0.0, 1.0), (400.0, 1.0)])
async def test_a_gpu_that_draws_more_than_it_may_gets_pauses(monkeypatch, cap_w, share):
    for name, answer in {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(free=8 << 30),
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [],
        "nvmlDeviceGetGraphicsRunningProcesses": lambda handle: [],
        "nvmlDeviceGetProcessUtilization": lambda handle, since: [],
        "nvmlDeviceGetTemperature": lambda handle, sensor: 60,
        "nvmlDeviceGetPowerUsage": lambda handle: 300_000,
    }.items():
        monkeypatch.setattr(pynvml, name, answer)
    async with watching(GpuProbe("abc"), gpu_max_w=cap_w) as told:
        await told.looked.wait()
        assert told.shares[0] == share
