"""Who pauses gets what was asked for, whatever happens meanwhile; who wakes up gets a fresh worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest
import torch

from engine.client.client import Client
from engine.config import ClientConfig
from engine.core.errors import EngineError
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import StageState, SwarmSnapshot
from engine.localapi.running import Home
from engine.localapi.schema import PauseRequest
from engine.node import stage_runner
from engine.node.resting import Parts, Resting
from engine.node.stage_runner import Phase, StageRunner
from engine.policy.yielding import Decision
from engine.swarm.links import Links
from tests.support.living_swarm import (
    CLOCK,
    MEMBERSHIP,
    QUICK,
    LivingNode,
    LivingSwarm,
    begin,
    living_swarm,
)
from tests.support.swarm import eventually


@dataclass
class House:
    """A node's stage, its rest, and whether it is in a swarm."""

    swarm: LivingSwarm
    node: LivingNode
    stage: StageRunner | None
    calls: list[str] = field(default_factory=list)
    resting: Resting | None = None

    async def note(self, what: str) -> None:
        self.calls.append(what)


@dataclass
class Remembered:
    """The swarm as somebody saw it once."""

    then: SwarmSnapshot

    def snapshot(self) -> SwarmSnapshot:
        return self.then

    async def refresh(self) -> SwarmSnapshot:
        return self.then


@pytest.fixture
async def house(tiny: Path, tmp_path: Path) -> AsyncIterator[House]:
    async with living_swarm(tiny, tmp_path / "keys") as swarm:
        node = swarm.node(0, Span(0, 4))
        await begin(node)
        house = House(swarm, node, node.stage)
        parts = Parts(
            lambda: house.stage,
            lambda: house.note("look no more"),
            lambda: house.note("leave"),
            lambda: house.note("come back"),
        )
        house.resting = Resting(Home.under(tmp_path), CLOCK, parts, lambda: None)
        yield house
        house.resting.close()


async def answer(client: Client, tokens: int) -> int:
    """How many tokens it got."""
    params = [SamplingParams(max_new_tokens=tokens, temperature=1.5, seed=1)]
    return len([event async for event in client.generate([[5, 6, 7]], params)])


async def test_swarm_is_left_once_though_the_membership_fails_while_the_last_answer_ends(
    house: House,
) -> None:
    answering = asyncio.create_task(answer(house.node.client, 1500))
    await eventually(lambda: house.node.handler.num_sessions)
    for _ in range(2):  # who is in doubt asks twice
        await house.resting.pause(PauseRequest(scope="everything", finish_first=True))
    assert house.node.stage.phase is Phase.DRAINING
    assert "leave" not in house.calls
    house.stage = None  # as while the node waits to join again
    await house.node.stage.close()
    await eventually(lambda: "leave" in house.calls)
    await asyncio.sleep(0.5)  # longer than between two looks
    assert house.calls.count("leave") == 1
    await house.resting.resume()
    assert house.calls[-1] == "come back"
    answering.cancel()


async def test_stage_that_shall_finish_and_pause_stays_paused_whatever_ends_its_answer_and_takes_no_work(
    house: House,
) -> None:
    links = Links(house.swarm.network.transport(PeerId("stranger")), QUICK, CLOCK, MEMBERSHIP)
    await links.start()
    directory = house.node.directory
    await eventually(lambda: directory.snapshot().stages[0].state is StageState.ONLINE)
    view = Remembered(directory.snapshot())
    config = ClientConfig(room_wait_s=0.2, reuse_prefixes=False)
    stranger = Client(links, view, house.swarm.spec, config, CLOCK)
    assert await answer(stranger, 3) == 3
    answering = asyncio.create_task(answer(house.node.client, 1500))
    await eventually(lambda: house.node.handler.num_sessions)
    await house.resting.pause(PauseRequest(finish_first=True))
    assert house.node.stage.phase is Phase.DRAINING
    await house.resting.obey(Decision(runs=False, reason="Yielding to a game."))
    assert house.node.stage.phase is Phase.PAUSED
    await house.resting.obey(Decision(runs=True))
    assert house.node.stage.phase is Phase.PAUSED
    assert house.resting.reason == "Paused until you resume."
    answering.cancel()
    with pytest.raises(EngineError):  # it still counts on the stage
        await answer(stranger, 3)
    assert house.node.stage.worker_pid is None
    assert house.node.handler.num_sessions == 0
    await house.resting.begin_again()  # a sleep of the computer ends no pause
    assert house.node.stage.phase is Phase.PAUSED
    await links.stop()


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the GPU answers")
async def test_after_the_computer_has_slept_another_process_computes_or_says_that_the_gpu_is_gone(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, before = house.node.stage, house.node.stage.worker_pid
    await house.resting.begin_again()
    await house.node.serves(Span(0, 4))
    assert stage.worker_pid not in (None, before)
    assert not psutil.pid_exists(before)

    monkeypatch.setattr(stage_runner, "MAX_CRASHES", 1)
    stage.order = replace(stage.order, device="cuda")
    await house.resting.begin_again()
    await eventually(lambda: stage.phase is Phase.FAILED, 120)
    assert "The GPU does not answer" in stage.reason
    assert stage.worker_pid is None  # and no CPU computes in its place
    await eventually(lambda: not house.node.directory.snapshot().stages)
