"""A pause of the person's ends only as the person said."""

from __future__ import annotations

import asyncio
import time

from engine.core.clock import SystemClock
from engine.localapi.running import Home
from engine.localapi.schema import PauseRequest
from engine.node import pauses
from engine.node.resting import Parts, Resting


async def nothing() -> None:
    """A node without a stage and without a swarm."""


PARTS = Parts(lambda: None, nothing, nothing, nothing)


async def test_pause_asked_for_as_an_earlier_one_ends_stays(tmp_path, monkeypatch):
    save = pauses.save

    def slowly(file, pause):
        time.sleep(0.3)
        save(file, pause)

    resting = Resting(Home.under(tmp_path), SystemClock(), PARTS, lambda: None)
    await resting.pause(PauseRequest(seconds=0.1))
    monkeypatch.setattr(pauses, "save", slowly)
    await resting.pause(PauseRequest())  # the first one ends while this one is being written
    await asyncio.sleep(0.5)
    assert resting.reason == "Paused until you resume."
    resting.close()


async def test_pause_with_an_end_ends(tmp_path):
    resting = Resting(Home.under(tmp_path), SystemClock(), PARTS, lambda: None)
    await resting.pause(PauseRequest(seconds=0.1))
    assert resting.reason == "Paused for a while."
    async with asyncio.timeout(10):
        while resting.reason:
            await asyncio.sleep(0.02)
    resting.close()
