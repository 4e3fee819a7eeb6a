"""Generating through the swarm: open sessions along a route, send the prompt, read tokens.

The client holds the ids of every sequence (4 bytes a token). When a stage is lost it opens new
sessions along another route and sends prompt and answer so far as the prompt; because each token's
noise depends on its position alone, the answer goes on as if nothing had happened (design §3).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncGenerator, Iterable
from collections.abc import Sequence as SequenceOf
from typing import Any, Protocol, TypeVar

import numpy as np

from engine.client.batch import Batch, Failure, Sequence
from engine.client.patience import Patience
from engine.client.prefixes import Beginning, beginnings
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
    StageRefused,
    StageTimedOut,
)
from engine.core.generation import Lossy, PrefixUse, TokenEvent
from engine.core.ids import PeerId, SessionId, new_session_id, short
from engine.core.kv_room import kv_room
from engine.core.model_spec import ModelSpec
from engine.core.plans import Hop, Route
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import SwarmSnapshot
from engine.planner.micro_batches import choose_micro_batches, hop_costs
from engine.planner.routing import find_route, uncovered
from engine.protocol.frames import Frame, Kind, Row, RowFlags
from engine.protocol.messages import (
    Failed,
    HopMessage,
    OpenReply,
    OpenRequest,
    SamplingMessage,
    SequenceMessage,
    Sessions,
    StatsReply,
    StatsRequest,
    message_frame,
    parse,
)
from engine.protocol.tokens import decode_logprobs
from engine.swarm.links import Links

logger = logging.getLogger(__name__)

_REQUESTS = itertools.count(1)
_Reply = TypeVar("_Reply", OpenReply, StatsReply)
PREFILL_TOKEN_S = 0.1
"""Patience for each prompt token before the first answer, in seconds."""


class SwarmView(Protocol):
    """Who serves what; `engine.swarm.directory.Directory` is it."""

    def snapshot(self) -> SwarmSnapshot:
        """The swarm as last seen."""
        ...

    async def refresh(self) -> SwarmSnapshot:
        """Look again now.

        Raises:
            PeerUnreachable: Nobody could be asked.
        """
        ...


class Client:
    """This node's way of using the swarm."""

    def __init__(
        self,
        links: Links,
        view: SwarmView,
        spec: ModelSpec,
        config: ClientConfig,
        clock: Clock,
    ) -> None:
        self._links = links
        self._clock = clock
        self._view = view
        self._spec = spec
        self._config = config
        self._prefixes = PrefixUse.NONE
        if config.reuse_prefixes:
            self._prefixes = PrefixUse.SHARED if config.share_prefixes else PrefixUse.OWN
        self._batches: dict[SessionId, Batch] = {}
        self._replies: dict[tuple[PeerId, int, type], asyncio.Future[Any]] = {}
        self._routes: dict[SessionId, Route] = {}
        links.on([Kind.TOKENS], self._on_tokens)
        links.on([Kind.FAILED], self._on_failed)
        links.on([Kind.OPENED], lambda peer, frame: self._on_reply(peer, parse(frame, OpenReply)))
        links.on(
            [Kind.STATS_REPLY], lambda peer, frame: self._on_reply(peer, parse(frame, StatsReply))
        )
        links.on_lost(self._on_lost)

    async def generate(
        self,
        prompts: SequenceOf[SequenceOf[int]],
        params: SequenceOf[SamplingParams],
        prefixes: PrefixUse | None = None,
        lossy: Lossy | None = None,
    ) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        """Continue the prompts as one batch.

        Args:
            prompts: Token ids.
            params: One for each.
            prefixes: What may be taken over and left behind; None leaves it to the settings.
            lossy: How hidden states may be rounded on the wire; None leaves it to the settings.

        Yields:
            (index of the sequence, its next token), until every sequence has finished. Closing the
            generator frees the sessions at once.

        Raises:
            ContextTooLong: A prompt leaves no room for an answer.
            EngineError: Every attempt failed; the text says what was tried.
        """
        sequences = [
            self._sequence(index, prompt, sampling, self._config.lossy if lossy is None else lossy)
            for index, (prompt, sampling) in enumerate(zip(prompts, params, strict=True))
        ]
        use = self._prefixes if prefixes is None else prefixes
        avoid: set[PeerId] = set()
        patience = Patience(self._config, self._clock)
        for attempt in itertools.count():
            waiting = [sequence for sequence in sequences if not sequence.finished]
            if not waiting:
                return
            try:
                async with contextlib.aclosing(
                    self._attempt(waiting, attempt, avoid, use)
                ) as events:
                    async for index, event in events:
                        patience.got_on()
                        yield index, event
            except EngineError as error:
                wait_s = patience.after(
                    error,
                    may_recover=not uncovered(self._view.snapshot(), joining=True),
                    tried_all=isinstance(error, NoRoute) and bool(avoid),
                )
                if isinstance(error, NoRoute | CacheFull):
                    avoid.clear()  # those that failed may be the only ones there are
                logger.info("Attempt %d failed: %s", attempt, error)
                await asyncio.sleep(wait_s)
                with contextlib.suppress(PeerUnreachable):  # then the last view must do
                    await self._view.refresh()

    @property
    def local_peer(self) -> PeerId:
        """Our own id."""
        return self._links.local_peer

    @property
    def routes_in_use(self) -> tuple[Route, ...]:
        """Those of the requests that run now."""
        return tuple(dict.fromkeys(self._routes.values()))

    def route(self) -> Route | None:
        """The route that a request would take now; None when there is none."""
        try:
            return find_route(self._view.snapshot(), link_s=self._link_times())
        except NoRoute:
            return None

    def _sequence(
        self, index: int, prompt: SequenceOf[int], params: SamplingParams, lossy: Lossy
    ) -> Sequence:
        context = self._spec.max_position_embeddings
        if len(prompt) >= context:
            raise ContextTooLong(
                f"The prompt has {len(prompt)} tokens, but the model's context is {context} tokens "
                "for prompt and answer together; shorten the prompt.",
                param="messages",
            )
        capacity = min(len(prompt) + params.max_new_tokens, context)
        return Sequence(index, list(prompt), len(prompt), capacity, params, lossy)

    async def _attempt(
        self, sequences: list[Sequence], attempt: int, avoid: set[PeerId], use: PrefixUse
    ) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        """Run the sequences along one route until all have finished or the route fails."""
        for sequence in sequences:
            sequence.session = new_session_id()
        rooms = [kv_room(s.capacity_tokens, self._config.kv_offload) for s in sequences]
        route = find_route(
            self._view.snapshot(),
            need_tokens=sum(room.device for room in rooms),
            need_ram_tokens=sum(room.ram for room in rooms),
            avoid=frozenset(avoid),
            link_s=self._link_times(),
        )
        batch = Batch({sequence.session: sequence for sequence in sequences})
        self._batches |= dict.fromkeys(batch.sequences, batch)
        self._routes |= dict.fromkeys(batch.sequences, route)
        opened: list[Hop] = []
        keeper: asyncio.Task[None] | None = None
        try:
            lease_s = await self._open(route, sequences, attempt, opened, avoid, use)
            batch.prefill_tokens = sum(len(s.ids) - s.reused_tokens for s in sequences)
            keeper = asyncio.create_task(self._keep(route, tuple(batch.sequences), lease_s / 3))
            self._links.send(route.first, _prompt_frame(sequences, attempt))
            # A sequence has finished as soon as its last token arrives, which is before we tell of it.
            while batch.news.qsize() or not all(sequence.finished for sequence in sequences):
                yield await self._next(batch, route, avoid)
        finally:
            if keeper is not None:
                keeper.cancel()
            for session in batch.sequences:
                del self._batches[session], self._routes[session]
            self._tell(opened, Kind.CLOSE, tuple(batch.sequences))

    async def _next(self, batch: Batch, route: Route, avoid: set[PeerId]) -> tuple[int, TokenEvent]:
        # A lost stage is noticed by its link; this limit catches one that lives but does nothing.
        limit_s = self._config.step_timeout_s + PREFILL_TOKEN_S * batch.prefill_tokens
        try:
            news = await asyncio.wait_for(batch.news.get(), limit_s)
        except TimeoutError:
            raise StageTimedOut(
                f"No token came for {limit_s:.0f} s from the stages "
                f"{_names(route)}; another route will be tried."
            ) from None
        if isinstance(news, Failure):
            if news.peer is not None:
                avoid.add(news.peer)
            raise news.error
        return news

    # Opening and keeping --------------------------------------------------------------------

    async def _open(
        self,
        route: Route,
        sequences: list[Sequence],
        attempt: int,
        opened: list[Hop],
        avoid: set[PeerId],
        use: PrefixUse,
    ) -> float:
        """Open the sequences at every stage; returns the shortest lease in seconds."""
        snapshot = self._view.snapshot()
        pass_rows = self._pass_rows(route, snapshot, len(sequences))
        begin = self._beginnings(route, sequences, attempt, use)
        messages = tuple(
            SequenceMessage(
                session=s.session,
                capacity_tokens=s.capacity_tokens,
                prompt_tokens=s.prompt_tokens,
                sampling=SamplingMessage.of(s.sampling),
                kv_offload=self._config.kv_offload,
                prefix_digests=b.digests,
                fork_of=b.fork_of,
                fork_tokens=b.fork_tokens,
                lossy=s.lossy,
            )
            for s, b in zip(sequences, begin, strict=True)
        )

        async def open_at(hop: Hop) -> OpenReply:
            try:
                stage = snapshot.stage(hop.peer)
                await self._links.connect(hop.peer, () if stage is None else stage.addresses)
                request = OpenRequest(
                    request=next(_REQUESTS),
                    model_id=self._spec.model_id,
                    hops=tuple(
                        HopMessage(peer=h.peer, start=h.span.start, end=h.span.end)
                        for h in route.hops
                    ),
                    attempt=attempt,
                    pass_rows=pass_rows,
                    sequences=messages,
                    prefixes=use,
                )
                opened.append(hop)
                reply = await self._ask(hop.peer, Kind.OPEN, request, OpenReply)
            except PeerError:
                avoid.add(hop.peer)
                raise
            if reply.refused:
                avoid.add(hop.peer)
                if reply.code == CacheFull.code:
                    raise CacheFull(reply.refused)
                raise StageRefused(reply.refused)
            return reply

        results = await asyncio.gather(
            *(open_at(hop) for hop in route.hops), return_exceptions=True
        )
        replies: list[OpenReply] = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            replies.append(result)
        for place, (sequence, beginning) in enumerate(zip(sequences, begin, strict=True)):
            # A stage of another version offers nothing.
            offers = [
                r.reused_tokens[place] if place < len(r.reused_tokens) else 0 for r in replies
            ]
            sequence.reused_tokens = min(beginning.agreed_tokens(offers), len(sequence.ids) - 1)
        return max(1.0, min(reply.lease_s for reply in replies))

    def _beginnings(
        self, route: Route, sequences: list[Sequence], attempt: int, use: PrefixUse
    ) -> list[Beginning]:
        """What the sequences need not compute, as far as we know."""
        if use is PrefixUse.NONE:
            return [Beginning()] * len(sequences)
        new = [(sequence.session, sequence.ids) for sequence in sequences]
        if attempt:  # another one may have failed them the first time
            return [beginnings([sequence], ())[0] for sequence in new]
        known = dict(new)
        live = [
            (session, batch.sequences[session].sent_ids)
            for session, batch in self._batches.items()
            if session not in known and self._routes[session] == route and not batch.has_failed
        ]
        return beginnings(new, live)

    def _pass_rows(self, route: Route, snapshot: SwarmSnapshot, batch_size: int) -> int:
        """Rows of a micro-batch."""
        number = self._config.micro_batches
        if not number:
            # Float32 at most; what it is exactly, only the stages know.
            row_bytes = 4 * self._spec.hidden_size
            costs = hop_costs(route, snapshot, self._link_times(), row_bytes)
            number = choose_micro_batches(costs, batch_size)
        return -(-batch_size // min(number, batch_size))

    async def stats(self, peer: PeerId) -> StatsReply:
        """A stage's counters.

        Raises:
            PeerError: It does not answer.
        """
        await self._links.connect(peer)
        return await self._ask(peer, Kind.STATS, StatsRequest(request=next(_REQUESTS)), StatsReply)

    async def _ask(
        self, peer: PeerId, kind: Kind, request: OpenRequest | StatsRequest, expected: type[_Reply]
    ) -> _Reply:
        # Only the peer that was asked can answer, and only what it was asked for.
        key = (peer, request.request, expected)
        future: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        self._replies[key] = future
        try:
            self._links.send(peer, message_frame(kind, request))
            return await asyncio.wait_for(future, self._config.open_timeout_s)
        except TimeoutError:
            raise StageTimedOut(
                f"The stage …{short(peer)} did not answer within "
                f"{self._config.open_timeout_s:.0f} s; another route will be tried."
            ) from None
        finally:
            del self._replies[key]

    async def _keep(self, route: Route, sessions: tuple[SessionId, ...], every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            self._tell(route.hops, Kind.KEEP, sessions)

    def _tell(self, hops: Iterable[Hop], kind: Kind, sessions: tuple[SessionId, ...]) -> None:
        for hop in hops:
            # A stage that cannot be reached loses the sessions by itself when their lease lapses.
            with contextlib.suppress(PeerUnreachable):
                self._links.send(hop.peer, message_frame(kind, Sessions(sessions=sessions)))

    def _link_times(self) -> dict[PeerId, float]:
        snapshot: SwarmSnapshot = self._view.snapshot()
        times = {self._links.local_peer: 0.0}
        for stage in snapshot.stages:
            rtt_s = self._links.rtt_s(stage.peer)
            if stage.peer not in times and rtt_s is not None:
                times[stage.peer] = rtt_s / 2
        return times

    # Frames in ------------------------------------------------------------------------------

    def _on_tokens(self, peer: PeerId, frame: Frame) -> None:
        if any(row.count != 1 for row in frame.rows):
            raise RemoteProtocolError("The peer sent an answer of several tokens for one row.")
        tokens = zip(frame.rows, frame.ids.tolist(), decode_logprobs(frame), strict=True)
        for row, token, logprobs in tokens:
            route = self._routes.get(row.session)
            if route is None:
                continue  # closed meanwhile
            if route.last != peer:
                raise RemoteProtocolError("The peer answered for a session that it does not end.")
            if not 0 <= token < self._spec.vocab_size:
                raise RemoteProtocolError("The peer sent token ids outside the vocabulary.")
            self._batches[row.session].receive(row, token, logprobs)

    def _on_failed(self, peer: PeerId, frame: Frame) -> None:
        message = parse(frame, Failed)
        routes = [self._routes.get(SessionId(session)) for session in message.sessions]
        touched = {
            id(batch): batch
            for session, route in zip(message.sessions, routes, strict=True)
            if route is not None
            and any(hop.peer == peer for hop in route.hops)
            and (batch := self._batches.get(SessionId(session))) is not None
        }
        # A neighbour that reports a lost link is not itself to blame.
        culprit = None if message.code == PeerUnreachable.code else peer
        for batch in touched.values():
            batch.fail(StageRefused(message.reason), culprit)

    def _on_reply(self, peer: PeerId, reply: OpenReply | StatsReply) -> None:
        future = self._replies.get((peer, reply.request, type(reply)))
        if future is not None and not future.done():
            future.set_result(reply)

    def _on_lost(self, peer: PeerId, error: PeerError) -> None:
        touched = {
            id(self._batches[session]): self._batches[session]
            for session, route in self._routes.items()
            if any(hop.peer == peer for hop in route.hops)
        }
        for batch in touched.values():
            batch.fail(error, peer)


def _prompt_frame(sequences: list[Sequence], attempt: int) -> Frame:
    starts = [s.reused_tokens for s in sequences]
    rows = tuple(
        Row(s.session, start, len(s.ids) - start, attempt, RowFlags.SAMPLE)
        for s, start in zip(sequences, starts, strict=True)
    )
    ids = np.concatenate(
        [np.array(s.ids[start:], np.int32) for s, start in zip(sequences, starts, strict=True)]
    )
    return Frame(Kind.STEP, b"", rows, ids)


def _names(route: Route) -> str:
    return ", ".join(f"…{short(hop.peer)}" for hop in route.hops)
