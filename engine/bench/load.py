"""More work than the line carries, for a while: the measured client's part of `shoal bench caps`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from engine.bench.measured import Loaded
from engine.bench.specs import Load
from engine.client.client import Client
from engine.core.errors import EngineError
from engine.core.generation import PrefixUse
from engine.core.ids import PeerId
from engine.core.sampling_params import SamplingParams
from engine.profiler.network import QUICK, Prober

_PROBE_EVERY_S = 10.0
_AFTER_FAILURE_S = 1.0


async def load(client: Client, prober: Prober, order: Load) -> Loaded:
    """Carry out the order: chats that decode, prompts that prefill, and probes of one peer's line."""
    loaded = Loaded()
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(_again_and_again(client, prompt, new_tokens, loaded))
            for prompts, new_tokens in ((order.chats, order.new_tokens), (order.prompts, 1))
            for prompt in prompts
        ]
        running.append(tasks.create_task(_probe(prober, PeerId(order.probed), loaded)))
        await asyncio.sleep(order.lasts_s)
        for task in running:
            task.cancel()
    return loaded


async def _again_and_again(
    client: Client, prompt: Sequence[int], new_tokens: int, loaded: Loaded
) -> None:
    params = [SamplingParams(max_new_tokens=new_tokens)]
    while True:
        try:
            answer = client.generate([prompt], params, PrefixUse.NONE)
            async with contextlib.aclosing(answer):
                async for _ in answer:
                    loaded.tokens += 1
        except EngineError:
            loaded.failed += 1
            await asyncio.sleep(_AFTER_FAILURE_S)


async def _probe(prober: Prober, peer: PeerId, loaded: Loaded) -> None:
    while True:
        loaded.probes += len(await prober.measure([peer], QUICK))
        await asyncio.sleep(_PROBE_EVERY_S)
