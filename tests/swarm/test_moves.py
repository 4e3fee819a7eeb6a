"""Nodes go where the swarm needs them, while it works; no token changes, and no block is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from engine.client.client import Client
from engine.core.errors import EngineError, EnginePaused, StageRefused
from engine.core.generation import TokenEvent
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.core.sampling_params import SamplingParams
from engine.core.sentences import Sentence
from engine.core.snapshot import StageState, SwarmSnapshot
from engine.node.stage_runner import Phase
from engine.planner.placement import choose_span
from engine.planner.rebalance import Move
from engine.planner.routing import uncovered
from tests.support.living_swarm import LivingNode, LivingSwarm, begin, living_swarm
from tests.support.swarm import eventually

NEW_TOKENS = 900
PROMPTS = [list(range(20, 60)), [5, 6, 7]]
PARAMS = [
    SamplingParams(max_new_tokens=NEW_TOKENS),
    SamplingParams(max_new_tokens=NEW_TOKENS, temperature=1.0, seed=11),
]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture
async def swarm(tiny: Path, keys: Path) -> AsyncIterator[LivingSwarm]:
    async with living_swarm(tiny, keys) as swarm:
        yield swarm


def send(**where: tuple[int, int]) -> Callable[..., Move | None]:
    """A policy that wants these nodes (`n0`, …) there."""

    def policy(
        snapshot: SwarmSnapshot,
        peer: PeerId,
        max_blocks: int,
        *,
        size: ModelSize | None,
    ) -> Move | None:
        stage = snapshot.stage(peer)
        name = f"n{sorted(s.peer for s in snapshot.stages).index(peer)}"
        if name not in where or stage is None:
            return None
        if Span(*where[name]) in (stage.span, stage.next_span):
            return None
        return Move(Span(*where[name]), Sentence("The test wants it."), 1.0)

    return policy


async def write(client: Client) -> list[list[TokenEvent]]:
    events: list[list[TokenEvent]] = [[] for _ in PROMPTS]
    async for index, event in client.generate(PROMPTS, PARAMS):
        events[index].append(event)
    return events


async def write_until(client: Client, done: asyncio.Task[object]) -> list[list[list[TokenEvent]]]:
    """Write the answers again and again, so that something happens in the middle of one."""
    answers = []
    while not done.done():
        answers.append(await write(client))
    return answers


def watch_for_holes(node: LivingNode) -> list[SwarmSnapshot]:
    holes: list[SwarmSnapshot] = []
    node.directory.watch(lambda seen: holes.append(seen) if uncovered(seen) else None)
    return holes


async def test_node_moves_while_answers_are_written_and_nothing_of_them_changes(
    swarm: LivingSwarm,
) -> None:
    one, two = swarm.node(0, Span(0, 1)), swarm.node(1, Span(1, 4), policy=send(n1=(1, 3)))
    await begin(one, two)
    undisturbed = await write(one.client)
    await begin(three := swarm.node(2, Span(3, 4)))
    holes = watch_for_holes(one)
    old_worker = two.stage.worker_pid
    moving = asyncio.create_task(two.balancer.consider(two.stage))
    answers = await write_until(one.client, moving)
    assert await moving
    assert all(answer == undisturbed for answer in answers)
    assert one.client.recoveries.stages_replaced == 2  # of one answer, which was being written
    assert (two.stage.order.span, three.handler.pace.tokens > 0) == (Span(1, 3), True)
    assert two.stage.worker_pid != old_worker
    assert not holes
    seen = (await one.directory.refresh()).stage(two.peer)
    assert (seen.span, seen.next_span) == (Span(1, 3), None)


async def test_blocks_that_nobody_else_serves_are_not_given_up_and_a_pause_ends_a_move(
    swarm: LivingSwarm,
) -> None:
    policy = send(n0=(1, 3), n1=(0, 2))
    whole, half = swarm.node(0, Span(0, 4), policy=policy), swarm.node(1, Span(2, 4), policy=policy)
    await begin(whole, half)

    whole.has_room = False  # for a standby, so that it would have to stop first
    with pytest.raises(StageRefused, match="Blocks 0–3 are not given up"):
        await whole.balancer.consider(whole.stage)
    assert whole.stage.order.span == Span(0, 4)

    whole.has_room = True
    moving = asyncio.create_task(whole.balancer.consider(whole.stage))
    await eventually(lambda: len(whole.handler._servings) == 2, 90)
    await whole.stage.pause("Paused.", finish_first=False)
    with pytest.raises(EnginePaused):
        await moving
    assert not whole.handler._servings
    await whole.stage.resume()
    await whole.serves(Span(0, 4))

    half.has_room = False
    holes = watch_for_holes(whole)
    await eventually(lambda: not uncovered(half.directory.snapshot()))
    assert await half.balancer.consider(half.stage)
    await half.serves(Span(0, 2))
    assert not holes


async def test_blocks_that_cannot_be_loaded_leave_the_old_ones_serving(
    swarm: LivingSwarm, tmp_path: Path
) -> None:
    one, two = swarm.node(0, Span(0, 4)), swarm.node(1, Span(0, 2), policy=send(n1=(2, 4)))
    await begin(one, two)
    two.files = tmp_path  # there are none
    for two.has_room in (True, False):
        with pytest.raises(EngineError):
            await two.balancer.consider(two.stage)
        await two.serves(Span(0, 2))
        await eventually(lambda: told(one, two) == (Span(0, 2), StageState.ONLINE, None))
        assert len(two.handler._servings) == 1


async def test_pause_while_an_aim_is_announced_leaves_nothing_behind(swarm: LivingSwarm) -> None:
    one, two = swarm.node(0, Span(0, 4)), swarm.node(1, Span(0, 2), policy=send(n1=(2, 4)))
    await begin(one, two)
    considering = asyncio.create_task(two.balancer.consider(two.stage))
    await eventually(lambda: two.stage.herald.next_span == Span(2, 4))
    worker = psutil.Process(two.stage.worker_pid)
    await two.stage.pause("Paused.", finish_first=False)
    assert not worker.is_running()
    assert (await one.directory.refresh()).stage(two.peer) is None
    assert not await considering
    assert (two.stage.phase, two.stage.worker_pid) == (Phase.PAUSED, None)
    assert (await one.directory.refresh()).stage(two.peer) is None


def told(one: LivingNode, other: LivingNode) -> tuple[Span, StageState, Span | None] | None:
    """What one node has heard of another."""
    stage = one.directory.snapshot().stage(other.peer)
    return None if stage is None else (stage.span, stage.state, stage.next_span)


async def test_of_two_newcomers_with_the_same_aim_the_lower_id_goes_there(
    swarm: LivingSwarm,
) -> None:
    def weakest(
        snapshot: SwarmSnapshot,
        peer: PeerId,
        max_blocks: int,
        *,
        size: ModelSize | None,
    ) -> Move | None:
        """What is served worst, not counting those that have to yield."""
        own = snapshot.stage(peer)
        counted = tuple(
            stage
            for stage in snapshot.stages
            if stage.peer < peer or (own is None and stage.peer != peer)
        )
        span = choose_span(replace(snapshot, stages=counted), max_blocks)
        return None if own is not None and own.span == span else Move(span, Sentence("Worst."), 1.0)

    nodes = [swarm.node(number, max_blocks=2, policy=weakest) for number in range(3)]
    for node in nodes:
        node.directory.start()

    async def join(node: LivingNode) -> Span:
        span = await node.balancer.choose()
        node.stage.order = replace(node.stage.order, span=span)
        node.stage.announce(StageState.JOINING)
        await asyncio.sleep(0.3)  # so that each knows that it is not alone
        return await node.balancer.join(node.stage)

    spans = await asyncio.gather(*map(join, nodes))
    assert spans == [Span(0, 2), Span(2, 4), Span(0, 2)]
