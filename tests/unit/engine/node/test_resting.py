"""A pause of the person's ends only as the person said."""

from __future__ import annotations

import asyncio
import time

import pytest

from engine.core.clock import SystemClock
from engine.core.errors import EngineError
from engine.localapi.running import Home
from engine.localapi.schema import PauseRequest
from engine.node import pauses
from engine.node import resting as resting_module
from engine.node.resting import Parts, Resting
from engine.node.stage_runner import Phase
from engine.policy.yielding import Decision


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


async def test_pause_that_cannot_be_kept_holds_and_is_told_and_kept_once_it_can_be(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(resting_module, "_KEEP_AGAIN_S", 0.05)
    home = Home.under(tmp_path)
    resting = Resting(home, SystemClock(), PARTS, lambda: None)
    home.pause_file.mkdir(parents=True)  # so that no file can be put there
    await resting.pause(PauseRequest())
    assert resting.reason == "Paused until you resume."
    (notice,) = resting.notices
    assert notice.startswith("The pause cannot be kept in ")
    assert "a restart would forget it" in notice
    home.pause_file.rmdir()
    async with asyncio.timeout(10):
        while resting.notices:
            await asyncio.sleep(0.02)
    assert pauses.load(home.pause_file, 0.0) is not None
    resting.close()


async def test_pause_ends_though_that_cannot_be_kept(tmp_path):
    home = Home.under(tmp_path)
    resting = Resting(home, SystemClock(), PARTS, lambda: None)
    await resting.pause(PauseRequest())
    home.pause_file.unlink()
    (home.pause_file / "in the way").mkdir(parents=True)
    await resting.resume()
    assert resting.reason == ""
    assert resting.notices[0].startswith("The end of the pause cannot be kept in ")
    resting.close()


async def test_the_engine_ends_only_after_answers_of_its_own_but_within_the_limit(tmp_path):
    resting = Resting(Home.under(tmp_path), SystemClock(), PARTS, lambda: None)
    running = [True]
    ending = asyncio.create_task(resting.drain("Ends.", lambda: bool(running), 60.0))
    await asyncio.sleep(0.3)
    assert not ending.done()
    running.clear()
    await asyncio.wait_for(ending, 10)
    await asyncio.wait_for(resting.drain("Ends.", lambda: True, 0.1), 10)


class Stage:
    """One that is still loading."""

    phase = Phase.LOADING
    resumed = 0

    async def resume(self) -> None:
        self.resumed += 1


async def test_an_end_that_fails_lets_the_stage_begin_again(tmp_path):
    stage = Stage()

    async def refuse() -> None:
        raise EngineError("The swarm does not answer.")

    parts = Parts(lambda: stage, refuse, nothing, nothing)
    resting = Resting(Home.under(tmp_path), SystemClock(), parts, lambda: None)
    with pytest.raises(EngineError):
        await resting.drain("Ends.", lambda: False, 1.0)
    await resting.resume()
    assert stage.resumed == 2
    resting.close()


async def test_draft_may_run_while_the_stage_alone_is_paused_and_the_machine_is_free(tmp_path):
    resting = Resting(Home.under(tmp_path), SystemClock(), PARTS, lambda: None)
    await resting.pause(PauseRequest())
    assert resting.reason
    assert not resting.draft_reason
    await resting.obey(Decision(runs=False, reason="A game runs."))
    assert resting.draft_reason
    await resting.obey(Decision(runs=True))
    assert not resting.draft_reason
    await resting.pause(PauseRequest(scope="everything"))
    assert resting.draft_reason
    await resting.resume()
    assert not resting.draft_reason
    await resting.obey(Decision(runs=False, reason="A game runs."))
    assert resting.draft_reason == "A game runs."
    resting.close()
