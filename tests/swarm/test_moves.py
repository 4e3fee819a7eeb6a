"""Nodes go where the swarm needs them, while it works; no token changes, and no block is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from engine.client.client import Client
from engine.core.generation import TokenEvent
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import SwarmSnapshot
from engine.planner.rebalance import Move
from engine.planner.routing import uncovered
from tests.support.living_swarm import LivingNode, LivingSwarm, begin, living_swarm
from tests.support.tiny_models import save_tiny

NEW_TOKENS = 900
PROMPTS = [list(range(20, 60)), [5, 6, 7]]
PARAMS = [
    SamplingParams(max_new_tokens=NEW_TOKENS),
    SamplingParams(max_new_tokens=NEW_TOKENS, temperature=1.0, seed=11),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory, max_position_embeddings=1024)
    return directory


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
        snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int, *, size: ModelSize | None
    ) -> Move | None:
        stage = snapshot.stage(peer)
        name = f"n{sorted(s.peer for s in snapshot.stages).index(peer)}"
        if name not in where or stage is None or stage.span == Span(*where[name]):
            return None
        return Move(Span(*where[name]), "The test wants it.", 1.0)

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
