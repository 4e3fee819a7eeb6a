"""Generating through the swarm: send prompts, read tokens, whatever happens on the way.

The client holds the ids of every sequence (4 bytes a token). `client.journey` finds a route for them
and repairs it when a stage is lost; because each token's noise depends on its position alone, the
answer goes on as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable
from collections.abc import Sequence as SequenceOf
from dataclasses import replace

from engine.client.asking import Asker
from engine.client.batch import AnswerMisfits, Batch, Failure, Recoveries, Sequence
from engine.client.beside import can_expect
from engine.client.dealing import Dealer
from engine.client.drafter import Drafter
from engine.client.drafting import Drafting, drafting_for
from engine.client.experience import Experience
from engine.client.journey import Journey, SwarmView
from engine.client.merging import merged
from engine.client.opening import link_times
from engine.client.patience import Patience
from engine.client.repair import PREFILL_TOKEN_S
from engine.client.steering import Steering, route_costs
from engine.config import ClientConfig
from engine.core.clock import Clock
from engine.core.errors import (
    CacheFull,
    ContextTooLong,
    EngineError,
    NoRoute,
    PeerError,
    PeerUnreachable,
    RemoteProtocolError,
    StageTimedOut,
)
from engine.core.generation import (
    Lossy,
    PrefixUse,
    Speculation,
    SpeculationWish,
    TokenEvent,
)
from engine.core.ids import PeerId, SessionId
from engine.core.model_spec import ModelSpec
from engine.core.plans import Route
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import SwarmSnapshot
from engine.planner.routing import find_route, uncovered
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import Failed, StatsReply, StatsRequest, parse
from engine.protocol.recovery import Notice
from engine.protocol.rows import RowFlags
from engine.protocol.tokens import decode_logprobs
from engine.speculation.costs import SLOW_BYTES_PER_S, Costs
from engine.speculation.estimates import Timing
from engine.swarm.links import Links

logger = logging.getLogger(__name__)

_MAX_TIMINGS = 64


class Client:
    """This node's way of using the swarm."""

    def __init__(
        self,
        links: Links,
        view: SwarmView,
        spec: ModelSpec,
        config: ClientConfig,
        clock: Clock,
        drafter: Drafter | None = None,
    ) -> None:
        """`drafter` is the draft of the model, if there is one here."""
        self._links = links
        self._clock = clock
        self._view = Experience(view, links, spec, config, clock)
        self._spec = spec
        self._config = config
        self.drafter = drafter
        self._prefixes = PrefixUse.NONE
        if config.reuse_prefixes:
            self._prefixes = PrefixUse.SHARED if config.share_prefixes else PrefixUse.OWN
        self._journeys: dict[SessionId, Journey] = {}
        self._timings: dict[tuple[Route, int], Timing] = {}
        """What rounds have taken on routes, by the size of the batch; the latest ones."""
        self._asker = Asker(links)
        self._dealer = Dealer(links, self.view, spec, config)
        self.recoveries = Recoveries()
        """How often and how fast lost routes were repaired."""
        links.on([Kind.TOKENS], self._on_tokens)
        links.on([Kind.FAILED], self._on_failed)
        links.on([Kind.NOTICE], self._on_notice)
        links.on_lost(self._on_lost)

    async def generate(
        self,
        prompts: SequenceOf[SequenceOf[int]],
        params: SequenceOf[SamplingParams],
        prefixes: PrefixUse | None = None,
        lossy: Lossy | None = None,
        speculation: Speculation | SpeculationWish | None = None,
        drafting: Drafting | None = None,
    ) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        """Continue the prompts as one batch, over several chains at once where that is faster.

        Args:
            prompts: Token ids.
            params: One for each.
            prefixes: What may be taken over and left behind; None leaves it to the settings.
            lossy: How hidden states may be rounded on the wire; None leaves it to the settings.
            speculation: What proposes tokens that the stages verify several at a time; the answer is
                the same with any. None leaves it to the settings.
            drafting: The same, for drafts of the caller's own; None: as `speculation` says.

        Yields:
            (index of the sequence, its next token), until every sequence has finished. Closing the
            generator frees the sessions at once.

        Raises:
            ContextTooLong: A prompt leaves no room for an answer.
            RequestError: A model shall draft, and there is none here.
            EngineError: Every attempt failed; the text says what was tried.
        """
        config = self._config
        lossy = config.lossy if lossy is None else lossy
        if drafting is None:
            drafting = await self._drafting(speculation, params)
        sequences = [
            self._sequence(index, prompt, sampling, lossy, drafting)
            for index, (prompt, sampling) in enumerate(zip(prompts, params, strict=True))
        ]
        use = self._prefixes if prefixes is None else prefixes
        dealt = await self._dealer.deal(sequences)
        parts = [self._follow(part, use, route, drafting) for route, part in dealt]
        stream = merged(parts) if len(parts) > 1 else parts[0]
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                yield event

    async def _drafting(
        self,
        speculation: Speculation | SpeculationWish | None,
        params: SequenceOf[SamplingParams],
    ) -> Drafting | None:
        """What drafts for a request; one that does not say so is answered plainly if nothing can."""
        config = self._config
        asked = speculation or SpeculationWish()
        names_draft = asked.draft is not None
        if isinstance(asked, SpeculationWish):
            asked = asked.completed(config.speculation, config.draft_tokens)
        try:
            drafting = drafting_for(asked, self.drafter, params)
            if drafting is not None and drafting.drafter and drafting.make_policy is None:
                await drafting.drafter.ready()
        except EngineError:
            if names_draft:
                raise
            return None
        return drafting

    async def _follow(
        self,
        sequences: list[Sequence],
        use: PrefixUse,
        first: Route | None,
        drafting: Drafting | None,
    ) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        """Generate sequences that travel together."""
        named = {sequence.session: sequence for sequence in sequences}
        batch = Batch(named, self._clock, self.recoveries, drafting)
        journey = Journey(
            batch,
            use,
            self._links,
            self._view,
            self._spec,
            self._config,
            self._asker,
            self._live,
            first,
        )
        patience = Patience(self._config, self._clock)
        self._journeys |= dict.fromkeys(batch.sequences, journey)
        try:
            # A sequence has finished as soon as its last token arrives, which is before we tell of it.
            while batch.waiting or batch.news.qsize():
                try:
                    if batch.waiting:
                        await journey.establish()
                        self._watch(journey)
                        if journey.has_advanced:
                            patience.got_on()
                    while batch.waiting or batch.news.qsize():
                        event = await self._next(journey)
                        patience.got_on()
                        yield event
                except EngineError as error:
                    await self._pause(journey, patience, error)
        finally:
            for session in batch.sequences:
                del self._journeys[session]
            journey.end()

    def _watch(self, journey: Journey) -> None:
        """See how fast the route is that has just been taken."""
        batch = journey.batch
        route = journey.route
        if route is None or batch.has_failed:
            return
        waiting = batch.waiting
        if not any(sequence.leads for sequence in waiting):
            sessions = [sequence.session for sequence in waiting]
            batch.stopwatch = self._view.stopwatch(route, sessions, self._rows_at)
            if batch.drafting is not None and batch.drafting.make_policy is not None:
                costs, timing = self._round_costs(route, waiting)
                policy = batch.drafting.make_policy(costs, timing)
                batch.steering = Steering(
                    policy, self._clock, costs, batch.drafter, batch.left_tokens
                )

    def _round_costs(self, route: Route, waiting: SequenceOf[Sequence]) -> tuple[Costs, Timing]:
        """What rounds of a batch should take on a route, and have taken there."""
        snapshot, link_s = self.view()
        batch_size = len(waiting)
        # Float32 at most; what it is exactly, only the stages know.
        costs = route_costs(route, snapshot, link_s, 4 * self._spec.hidden_size, batch_size)
        up_bytes_per_s = self._links.neighbours.uplink_bytes_per_s(route.first) or SLOW_BYTES_PER_S
        costs = replace(
            costs,
            takes_expected=can_expect(self._links, route),
            up_bytes_per_s=up_bytes_per_s,
            # Few lines carry less inward than outward.
            down_bytes_per_s=self._links.neighbours.downlink_bytes_per_s(route.last)
            or up_bytes_per_s,
            vocab_size=self._spec.vocab_size,
            replica_s=waiting[0].replica_s,
        )
        timing = self._timings.pop((route, batch_size), Timing())
        self._timings[route, batch_size] = timing
        while len(self._timings) > _MAX_TIMINGS:
            del self._timings[next(iter(self._timings))]
        return costs, timing

    def _rows_at(self) -> Counter[PeerId]:
        """Sequences of ours that run at each stage."""
        rows: Counter[PeerId] = Counter()
        for journey in dict.fromkeys(self._journeys.values()):
            for hop in () if journey.route is None else journey.route.hops:
                rows[hop.peer] += len(journey.batch.waiting)
        return rows

    def follow(self, config: ClientConfig) -> None:
        """Let requests that say nothing of drafts be drafted for as these settings say, from now on."""
        self._config = config

    @property
    def local_peer(self) -> PeerId:
        """Our own id."""
        return self._links.local_peer

    @property
    def routes_in_use(self) -> tuple[Route, ...]:
        """Those of the requests that run now."""
        return tuple(dict.fromkeys(j.route for j in self._journeys.values() if j.route is not None))

    def view(self) -> tuple[SwarmSnapshot, dict[PeerId, float]]:
        """The swarm as requests see it, and the one-way time to each stage as far as known."""
        snapshot = self._view.snapshot()
        return snapshot, link_times(self._links, snapshot)

    def route(self) -> Route | None:
        """The route that a request would take now; None when there is none."""
        snapshot, link_s = self.view()
        try:
            return find_route(snapshot, link_s=link_s)
        except NoRoute:
            return None

    def _sequence(
        self,
        index: int,
        prompt: SequenceOf[int],
        params: SamplingParams,
        lossy: Lossy,
        drafting: Drafting | None,
    ) -> Sequence:
        context = self._spec.max_position_embeddings
        if len(prompt) >= context:
            raise ContextTooLong(
                f"The prompt has {len(prompt)} tokens, but the model's context is {context} tokens "
                "for prompt and answer together; shorten the prompt.",
                param="messages",
            )
        capacity = min(len(prompt) + params.max_new_tokens, context)
        sequence = Sequence(index, list(prompt), len(prompt), capacity, params, lossy)
        if drafting is not None:
            sequence.draft_tokens = drafting.num_tokens
            sequence.draft = drafting.make_draft() if drafting.make_draft else None
            sequence.leads = drafting.make_policy is None and not drafting.beside
            sequence.prune_threshold = drafting.prune_threshold
            if drafting.drafter and drafting.wants_replica and params.temperature:
                sequence.draft_sha256 = drafting.drafter.sha256()
        return sequence

    def _live(self, route: Route) -> list[tuple[SessionId, list[int]]]:
        """Sequences that run along `route`, and what the stages compute of them in any case."""
        return [
            (session, journey.batch.sequences[session].sent_ids)
            for session, journey in self._journeys.items()
            if journey.heading == route and not journey.batch.has_failed
        ]

    async def _next(self, journey: Journey) -> tuple[int, TokenEvent]:
        batch = journey.batch
        # A lost stage is noticed by its link; this limit catches one that lives but does nothing.
        limit_s = self._config.step_timeout_s + PREFILL_TOKEN_S * batch.prefill_tokens
        while True:
            try:
                news = await asyncio.wait_for(batch.news.get(), limit_s)
            except TimeoutError:
                journey.has_stalled = True
                batch.troubled()
                raise StageTimedOut(
                    f"No token came for {limit_s:.0f} s from the stages {journey.names}; another "
                    "route will be tried."
                ) from None
            if not isinstance(news, Failure):
                return news
            if news.attempt == batch.attempt:
                raise news.error

    async def _pause(self, journey: Journey, patience: Patience, error: EngineError) -> None:
        """Wait as long as it makes sense before the next attempt; raises when it makes none."""
        gap = isinstance(error, NoRoute | CacheFull)
        had_failures = journey.ways.give_all_another_chance() if gap else False
        if isinstance(error, NoRoute):
            journey.let_leavers_go()
        wait_s = patience.after(
            error,
            may_recover=journey.heading is not None
            or not uncovered(self._view.snapshot(), joining=True),
            tried_all=isinstance(error, NoRoute) and had_failures,
        )
        if str(error) != journey.last_error:  # not four times a second while it waits
            logger.info("attempt %d is over: %s", journey.batch.attempt, error)
            journey.last_error = str(error)
        await asyncio.sleep(wait_s)
        if wait_s and not isinstance(error, PeerUnreachable):  # else the view was good enough
            with contextlib.suppress(PeerUnreachable):  # then the last view must do
                await self._view.refresh()

    async def stats(self, peer: PeerId) -> StatsReply:
        """A stage's counters.

        Raises:
            PeerError: It does not answer.
        """
        request = StatsRequest(request=self._asker.number())
        limit_s = self._config.open_timeout_s
        return await self._asker.ask(peer, Kind.STATS, request, StatsReply, limit_s)

    # Frames in ------------------------------------------------------------------------------

    def _on_tokens(self, peer: PeerId, frame: Frame) -> None:
        waiting: dict[Journey, list[Sequence]] = defaultdict(list)
        plain: dict[Journey, list[Sequence]] = defaultdict(list)
        ids, end = frame.ids.tolist(), 0
        for row, logprobs in zip(frame.rows, decode_logprobs(frame), strict=True):
            *expected, token = ids[end : end + row.count]
            end += row.count
            if expected and RowFlags.EXPECTED not in row.flags:
                raise RemoteProtocolError("The peer sent an answer of several tokens for one row.")
            journey = self._journeys.get(row.session)
            if journey is None or row.attempt != journey.batch.attempt:
                continue  # closed meanwhile, or of an older attempt
            if journey.route is None or journey.route.last != peer:
                raise RemoteProtocolError("The peer answered for a session that it does not end.")
            if not all(0 <= id_ < self._spec.vocab_size for id_ in (token, *expected)):
                raise RemoteProtocolError("The peer sent token ids outside the vocabulary.")
            sequence = journey.batch.sequences[row.session]
            try:
                if RowFlags.REFUSED in row.flags:
                    journey.refused(sequence, row)
                elif journey.batch.receive(row, token, logprobs, expected):
                    waiting[journey].append(sequence)
                elif not sequence.finished:
                    plain[journey].append(sequence)
            except AnswerMisfits as error:
                journey.misfits(error)
        for journey, sequences in waiting.items():
            journey.go_on(sequences)
        for journey, sequences in plain.items():
            journey.consider(sequences)

    def _on_failed(self, peer: PeerId, frame: Frame) -> None:
        message = parse(frame, Failed)
        for journey in self._of(message.sessions):
            journey.failed(peer, message)

    def _on_notice(self, peer: PeerId, frame: Frame) -> None:
        message = parse(frame, Notice)
        for journey in self._of(message.sessions):
            journey.noticed(peer, message)

    def _on_lost(self, peer: PeerId, error: PeerError) -> None:
        for journey in self._of(self._journeys):
            journey.lost(peer, error)

    def _of(self, sessions: Iterable[int]) -> list[Journey]:
        found = (self._journeys.get(SessionId(session)) for session in sessions)
        return list(dict.fromkeys(journey for journey in found if journey is not None))
