"""Running chats, and a long prompt that comes among them: the measured client's part."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math

from engine.bench.measured import Crowded
from engine.bench.specs import Crowd
from engine.client.client import Client
from engine.core.clock import Clock
from engine.core.errors import EngineError
from engine.core.generation import PrefixUse
from engine.core.sampling_params import SamplingParams

_WARM_UP_TOKENS = 8


async def crowd(client: Client, order: Crowd, clock: Clock) -> Crowded:
    """Carry out the order.

    Raises:
        EngineError: The swarm could not.
    """
    chats = _Chats(client, order, clock)
    try:
        return await _beside(chats, client, order, clock)
    except ExceptionGroup as group:
        failed = group.subgroup(EngineError)
        raise failed.exceptions[0] if failed is not None else group from group


async def _beside(chats: _Chats, client: Client, order: Crowd, clock: Clock) -> Crowded:
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(chats.run(number)) for number in range(len(order.chats))]
        await chats.until_each_has(_WARM_UP_TOKENS)
        before_s = clock.monotonic_s()
        await chats.until_each_has(_WARM_UP_TOKENS + order.before_tokens)
        started_s = clock.monotonic_s()
        params = [SamplingParams(max_new_tokens=1)]
        async with contextlib.aclosing(
            client.generate([order.long_prompt], params, PrefixUse.NONE)
        ) as tokens:
            await anext(tokens)
        ended_s = clock.monotonic_s()
        # What was held up by the long prompt shows in the token after it.
        await chats.until_each_has(1, after_s=ended_s)
        for task in running:
            task.cancel()
    gaps = chats.gaps()
    return Crowded(
        before_s=[b - a for a, b in gaps if before_s < a and b <= started_s],
        during_s=[b - a for a, b in gaps if started_s < b and a <= ended_s],
        prefill_s=ended_s - started_s,
    )


class _Chats:
    """Each answers its prompt again and again; when the tokens came."""

    def __init__(self, client: Client, order: Crowd, clock: Clock) -> None:
        self._client = client
        self._order = order
        self._clock = clock
        self._arrivals_s: list[list[list[float]]] = [[] for _ in order.chats]
        """Per chat, one answer after another, of each token."""
        self._arrived = asyncio.Event()

    async def run(self, number: int) -> None:
        """Chat until cancelled.

        Raises:
            EngineError: The swarm could not.
        """
        params = [SamplingParams(max_new_tokens=self._order.chat_tokens)]
        while True:
            answer_s: list[float] = []
            self._arrivals_s[number].append(answer_s)
            tokens = self._client.generate([self._order.chats[number]], params, PrefixUse.NONE)
            async with contextlib.aclosing(tokens):
                async for _ in tokens:
                    answer_s.append(self._clock.monotonic_s())
                    self._arrived.set()

    async def until_each_has(self, num_tokens: int, *, after_s: float = -math.inf) -> None:
        """Return when every chat has had so many tokens after a moment."""
        while any(
            sum(time_s > after_s for answer_s in answers_s for time_s in answer_s) < num_tokens
            for answers_s in self._arrivals_s
        ):
            self._arrived.clear()
            await self._arrived.wait()

    def gaps(self) -> list[tuple[float, float]]:
        """When one token came and when the next one of the same answer."""
        return [
            gap
            for answers_s in self._arrivals_s
            for answer_s in answers_s
            for gap in itertools.pairwise(answer_s)
        ]
