"""A stage that says it is fast, and is not: clients that have used it go elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.bench.emulated_model import write_emulated
from engine.client.client import Client
from engine.client.stopwatch import WINDOW
from engine.config import ClientConfig, StageEmulation
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import collect, local_swarm

FRONT, LIAR, HONEST = PeerId("front"), PeerId("liar"), PeerId("the-honest")
CLAIMS = {FRONT: 50.0, LIAR: 200.0, HONEST: 20.0}
TRUE_S = {FRONT: 0.02, LIAR: 0.2, HONEST: 0.05}
REQUESTS = 3


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("emulated")
    recorded = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    write_emulated(directory, recorded, 64, 4, torch.bfloat16)
    return directory


async def ask(client: Client, rows: int = 1) -> None:
    """One request, long enough to be measured once."""
    prompts = [[5, 6, 7 + row] for row in range(rows)]
    params = [SamplingParams(max_new_tokens=WINDOW + 2)] * rows
    events = await collect(client, prompts, params)
    assert [len(row) for row in events] == [WINDOW + 2] * rows


async def test_client_goes_around_a_stage_that_is_far_slower_than_it_says(emulated: Path) -> None:
    config = ClientConfig(reuse_prefixes=False)
    async with local_swarm(emulated, client=config) as swarm:
        swarm.claims = dict(CLAIMS)
        for peer, span in ((FRONT, Span(0, 2)), (LIAR, Span(2, 4)), (HONEST, Span(2, 4))):
            emulation = StageEmulation(stage_s=TRUE_S[peer], rows=8)
            await swarm.add_stage(peer, span, emulate=emulation)
        client = await swarm.add_client()
        route = client.route()
        assert route is not None
        assert route.last == LIAR
        for _ in range(REQUESTS):
            await ask(client)
        route = client.route()
        assert route is not None
        assert [hop.peer for hop in route.hops] == [FRONT, HONEST]

        # It is gone for a while, and comes back with a bolder lie.
        swarm.hidden.add(LIAR)
        await ask(client)
        swarm.hidden.clear()
        swarm.claims[LIAR] = 2000.0
        liar = next(stage for stage in swarm.stages if stage.peer == LIAR)
        before = liar.handler.pace.tokens
        await ask(client)
        await ask(client, rows=2)
        assert liar.handler.pace.tokens == before

        # Who has not used it cannot know.
        stranger = await swarm.add_client("stranger")
        route = stranger.route()
        assert route is not None
        assert route.last == LIAR
