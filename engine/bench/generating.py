"""One generation of the measured client, with everything that is noted of it."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.bench.answering import Lines
from engine.bench.measured import Counters, Measured, hash_ids
from engine.bench.specs import Question
from engine.client.client import Client
from engine.client.drafting import Drafting, drafting_for
from engine.core.clock import Clock
from engine.core.errors import NoRoute
from engine.core.ids import SessionId
from engine.core.plans import Route
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Frame, Kind
from engine.protocol.rows import Row
from engine.speculation.tree import Draft, TokenTree
from engine.swarm.links import Links

_BURST_S = 0.001
"""Tokens of one round come closer together."""


class GenerationWatch:
    """Generates, and notes every arrival; asks the stages for their counters meanwhile.

    Args:
        client: Generates.
        links: Its links.
        clock: For the arrivals.
        lines: Hears when as many tokens have come as the question says.
    """

    def __init__(self, client: Client, links: Links, clock: Clock, lines: Lines) -> None:
        self._client = client
        self._links = links
        self._clock = clock
        self._lines = lines

    async def generate(self, question: Question) -> Measured:
        """Carry out one order.

        Raises:
            EngineError: The swarm could not.
        """
        route = self._client.route()
        if route is None:
            raise NoRoute("The stages no longer cover every block; look at their logs.")
        params = [
            SamplingParams(
                max_new_tokens=question.new_tokens, temperature=question.temperature, seed=index
            )
            for index in range(len(question.prompts))
        ]
        arrivals_s: list[list[float]] = [[] for _ in question.prompts]
        ids: list[list[int]] = [[] for _ in question.prompts]
        notices = list(question.notify_at)
        reached_s: list[float] = []
        prefilling, num_tokens = len(question.prompts), 0
        steady: asyncio.Task[Counters] | None = None
        hidden_bytes = self._links.hidden_bytes
        recoveries = self._client.recoveries
        recoveries.seconds.clear()
        resent_ids, replaced = recoveries.resent_ids, recoveries.stages_replaced
        drafter = self._client.drafter
        if question.speculation.draft in ("model", "auto") and drafter is not None:
            await drafter.ready()  # its start is a matter of the first minute, and not measured
        drafting = drafting_for(question.speculation, drafter, params)
        if drafting is not None and not question.prunes:
            drafting = replace(drafting, prune_threshold=0.0)
        watch = DraftWatch(drafting, self._clock) if drafting else None
        started_s = self._clock.monotonic_s()
        sent_bytes = self._sent_bytes()
        fresh = [len(prompt) for prompt in question.prompts]
        rounds = drafted_tokens = accepted_tokens = pruned_tokens = 0
        mode_rounds: Counter[str] = Counter()
        stream = self._client.generate(
            question.prompts,
            params,
            question.prefixes,
            speculation=question.speculation,
            drafting=watch.drafting if watch else None,
        )
        last_s, ends_s = started_s, math.inf
        async with contextlib.aclosing(stream) as events:
            async for index, event in events:
                now_s = self._clock.monotonic_s()
                if now_s > ends_s and num_tokens > len(ids) and now_s - last_s > _BURST_S:
                    break
                last_s = now_s
                arrivals_s[index].append(now_s)
                ids[index].append(event.id)
                num_tokens += 1
                rounds += 1 - event.accepted_tokens
                drafted_tokens += event.drafted_tokens
                accepted_tokens += event.accepted_tokens
                pruned_tokens += event.pruned_tokens
                mode_rounds[event.mode.value] += bool(event.drafted_tokens)
                fresh[index] -= event.reused_tokens
                prefilling -= len(ids[index]) == 1
                if not prefilling and len(ids[index]) == 1 and question.limit_s:
                    ends_s = now_s + question.limit_s
                if not prefilling and question.steady and steady is None:
                    # Beside the generation, which must not wait for it.
                    steady = asyncio.create_task(self._counters(route))
                if notices and num_tokens >= notices[0]:
                    notices.pop(0)
                    reached_s.append(now_s)
                    self._lines.say("reached", self._peers_in_use())
        prompts = [
            prompt[len(prompt) - count :]
            for prompt, count in zip(question.prompts, fresh, strict=True)
        ]
        return Measured(
            started_s=started_s,
            arrivals_s=tuple(map(tuple, arrivals_s)),
            ids_sha256=hash_ids(ids),
            ids=tuple(map(tuple, ids)),
            client=self._client.local_peer,
            hops=tuple(hop.peer for hop in route.hops),
            before=await steady if steady else None,
            after=await self._counters(route) if steady else None,
            reached_s=tuple(reached_s),
            hidden_bytes=self._links.hidden_bytes - hidden_bytes,
            recoveries_s=tuple(recoveries.seconds),
            resent_ids=recoveries.resent_ids - resent_ids,
            stages_replaced=recoveries.stages_replaced - replaced,
            rounds=rounds,
            drafted_tokens=drafted_tokens,
            accepted_tokens=accepted_tokens,
            pruned_tokens=pruned_tokens,
            mode_rounds=+mode_rounds,
            sent_row_bytes=self._sent_bytes() - sent_bytes - _prompts_bytes(prompts),
            draft_s=watch.seconds if watch else 0.0,
        )

    def _sent_bytes(self) -> int:
        return sum(self._links.neighbours.sent_bytes().values())

    def _peers_in_use(self) -> list[str]:
        return sorted({str(hop.peer) for route in self._client.routes_in_use for hop in route.hops})

    async def _counters(self, route: Route) -> Counters:
        stages = await asyncio.gather(*(self._client.stats(hop.peer) for hop in route.hops))
        sent = {str(peer): count for peer, count in self._links.neighbours.sent_bytes().items()}
        return Counters(stages=tuple(stages), client_sent_bytes=sent)


def _prompts_bytes(prompts: Sequence[Sequence[int]]) -> int:
    """The frame that brings them to the first stage."""
    ids = np.array([token for prompt in prompts for token in prompt], np.int32)
    rows = tuple(Row(SessionId(0), 0, len(prompt)) for prompt in prompts)
    return Frame(Kind.STEP, b"", rows, ids).num_bytes


class DraftWatch:
    """Measures how long drafts take.

    Args:
        drafting: What makes them.
        clock: Tells the time.
    """

    def __init__(self, drafting: Drafting, clock: Clock) -> None:
        self._clock = clock
        self._at_once_s = 0.0
        self._drafter = drafting.drafter
        self._before_s = self._drafter.seconds if self._drafter else 0.0
        make_draft = drafting.make_draft
        self.drafting = drafting
        if make_draft is not None:
            self.drafting = replace(drafting, make_draft=lambda: _WatchedDraft(make_draft(), self))

    @property
    def seconds(self) -> float:
        """What drafts have taken so far, the model's included."""
        return self._at_once_s + (self._drafter.seconds - self._before_s if self._drafter else 0.0)

    def propose(self, draft: Draft, ids: Sequence[int], num_tokens: int) -> TokenTree:
        """Let a draft propose, and count the time."""
        started_s = self._clock.monotonic_s()
        try:
            return draft.propose(ids, num_tokens)
        finally:
            self._at_once_s += self._clock.monotonic_s() - started_s


class _WatchedDraft:
    def __init__(self, draft: Draft, watch: DraftWatch) -> None:
        self._draft = draft
        self._watch = watch

    def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
        return self._watch.propose(self._draft, ids, num_tokens)
