"""A stage that may compute only part of the time gives the same answers, later."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.client.client import Client
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import CLOCK, collect, local_swarm

PROMPTS = [[5, 6, 7], list(range(20, 60)), [9]]


@pytest.mark.parametrize("cut", [(Span(0, 4),), (Span(0, 2), Span(2, 4))])
async def test_a_stage_that_must_pause_gives_the_same_tokens_in_no_less_time(
    tiny: Path, cut: tuple[Span, ...]
) -> None:
    async def ids(client: Client) -> list[list[int]]:
        params = [SamplingParams(max_new_tokens=12)] * len(PROMPTS)
        events = await collect(client, PROMPTS, params)
        return [[event.id for event in row] for row in events]

    async with local_swarm(tiny, *cut) as swarm:
        client = await swarm.add_client("client")
        expected = await ids(client)
        paces = [stage.handler.pace for stage in swarm.stages]
        for pace in paces:
            pace.work_share = 0.2
        computed_s, began_s = [pace.compute_s for pace in paces], CLOCK.monotonic_s()
        assert await ids(client) == expected
        took_s = CLOCK.monotonic_s() - began_s
        for pace, before_s in zip(paces, computed_s, strict=True):
            assert took_s > 2 * (pace.compute_s - before_s)
            pace.work_share = 1.0
        assert await ids(client) == expected
