"""A batch over several chains at once: no token changes, and one chain's loss is the others' work.

Two of the stages are of the next release, which must not be noticed.
"""

from __future__ import annotations

from pathlib import Path

from engine.config import ClientConfig
from engine.core.plans import Span
from engine.core.protocol_window import OURS, ProtocolWindow
from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import collect, local_swarm

PROMPTS = [[5 + index, 6, 7, *range(20, 20 + index)] for index in range(8)]
PARAMS = [SamplingParams(max_new_tokens=30, temperature=index % 2, seed=3) for index in range(8)]
ALONE = ClientConfig(reuse_prefixes=False)
NEXT_RELEASE = ProtocolWindow(OURS.newest, OURS.newest + 1)


async def test_batch_goes_over_two_chains_and_over_the_other_when_one_is_lost(tiny: Path) -> None:
    spans, newer = (Span(0, 2), Span(2, 4), Span(0, 4)), {"s1": NEXT_RELEASE, "s2": NEXT_RELEASE}
    async with local_swarm(tiny, *spans, client=ALONE, protocols=newer) as swarm:
        swarm.decode_tokens_per_s, swarm.decode_row_s = 10.0, 0.001
        client = await swarm.add_client("one chain")
        expected = await collect(client, PROMPTS, PARAMS)
        used = [stage.handler.pace.tokens > 0 for stage in swarm.stages]
        assert used in ([True, True, False], [False, False, True])

        swarm.decode_row_s = 0.1
        client = await swarm.add_client("two chains")
        before = [stage.handler.pace.tokens for stage in swarm.stages]
        assert await collect(client, PROMPTS, PARAMS) == expected
        assert all(s.handler.pace.tokens > n for s, n in zip(swarm.stages, before, strict=True))

        client = await swarm.add_client("lost chain")
        events = [[] for _ in PROMPTS]
        async for index, event in client.generate(PROMPTS, PARAMS):
            events[index].append(event)
            if sum(map(len, events)) == 40:
                swarm.vanish(swarm.stages[1].peer)
        assert events == expected
        assert client.recoveries.stages_replaced >= 1
