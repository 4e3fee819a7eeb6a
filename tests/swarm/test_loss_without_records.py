"""Stages are lost, or leave, where little or nothing of what they sent on was kept."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from engine.client.client import Client
from engine.config import StageConfig
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import LocalSwarm, collect, local_swarm
from tests.support.losing_stages import (
    LONG,
    NEW_TOKENS,
    PARAMS,
    PATIENT,
    PROMPTS,
    SPANS,
    SPARE,
    Counted,
    at,
    lose,
)


async def client_of(swarm: LocalSwarm, name: str) -> Client:
    return swarm.client(await swarm.node(name), PATIENT)


async def test_stage_without_a_record_lets_the_one_before_it_compute_again(
    tiny: Path,
) -> None:
    forgetful = StageConfig(max_batch_tokens=32, kept_budget_bytes=0)
    async with local_swarm(tiny, *SPANS, config=forgetful) as swarm:
        swarm.hidden = {SPARE}
        undisturbed = await collect(await client_of(swarm, "undisturbed"), PROMPTS, PARAMS)
        client = await client_of(swarm, "forgetful")
        counted = Counted(swarm)
        losing = at(5, lambda: lose(swarm, swarm.stages[2]))
        assert await collect(client, PROMPTS, PARAMS, disturb=losing) == undisturbed
        assert [counted.replayed(index) for index in range(4)] == [0, 0, 0, 0]
        once = sum(map(len, PROMPTS)) + 2 * NEW_TOKENS
        assert counted.computed(0) > once + sum(map(len, PROMPTS)) - 6
        swarm.restore(swarm.stages[2].peer)
        swarm.hidden = {SPARE}

        # A stage that will pause hands over what runs, and does not wait for its end.
        client = await client_of(swarm, "handed-over")
        drained: list[asyncio.Task[None]] = []

        def drain() -> None:
            swarm.hidden = set()
            drained.append(asyncio.create_task(swarm.stages[1].handler.drain()))

        draining, left_at = at(5, drain), list[int]()

        def disturb(tokens: int) -> None:
            draining(tokens)
            if drained and drained[0].done():
                left_at.append(tokens)

        assert await collect(client, PROMPTS, PARAMS, disturb=disturb) == undisturbed
        assert left_at[0] < NEW_TOKENS
        await drained[0]

        # One that nobody can take the place of serves until all have ended.
        swarm.hidden = {PeerId("s1")}
        client = await client_of(swarm, "stays")
        last = swarm.stages[3].handler
        draining = at(5, lambda: drained.append(asyncio.create_task(last.drain())))
        assert await collect(client, PROMPTS, PARAMS, disturb=draining) == undisturbed
        await drained[1]
        assert client.recoveries.stages_replaced == 0


async def test_kept_outputs_stay_within_their_budget_and_go_with_their_session(tiny: Path) -> None:
    budget_bytes = 60_000  # of about 105,000 that the prompt's outputs take
    config = StageConfig(max_batch_tokens=32, kept_budget_bytes=budget_bytes)
    async with local_swarm(tiny, Span(0, 2), Span(2, 4), config=config) as swarm:
        client = await client_of(swarm, "kept")
        kept = []
        async with contextlib.aclosing(
            client.generate([LONG], [SamplingParams(max_new_tokens=40)])
        ) as events:
            async for _ in events:
                kept.append((await client.stats(PeerId("s0"))).kept_bytes)  # noqa: PERF401
        assert max(kept) <= budget_bytes
        assert max(kept) > budget_bytes // 2
        async with asyncio.timeout(5):
            while (await client.stats(PeerId("s0"))).kept_bytes:
                await asyncio.sleep(0.02)
