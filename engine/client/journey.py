"""One batch's way through the swarm: opened once, and repaired whenever a part of it is lost.

`establish` is all of it: put the stages that may live on hold and learn how far they are, keep their
places in the new route and fill the gaps with others, open the batch there, plan who sends what
(`client.flow`), lead every stage whose way has changed, let them replay what they have kept, and
send ids. The first time there is nobody to hold, and the rest is the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Coroutine, Iterable
from collections.abc import Sequence as SequenceOf
from typing import Any, Protocol

import numpy as np

from engine.client.asking import Asker
from engine.client.batch import Batch, Sequence
from engine.client.flow import HopFlow, HopState, plan_flow
from engine.client.opening import NotOpened, Opener, agree, hop_messages
from engine.client.prefixes import Beginning, beginnings
from engine.config import ClientConfig
from engine.core.errors import NoRoute, PeerError, PeerSilent, PeerUnreachable, StageRefused
from engine.core.generation import PrefixUse
from engine.core.ids import PeerId, SessionId, short
from engine.core.kv_room import kv_room
from engine.core.model_spec import ModelSpec
from engine.core.plans import Hop, Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.micro_batches import choose_micro_batches, hop_costs
from engine.planner.routing import find_route
from engine.protocol.frames import Frame, Kind, Row, RowFlags
from engine.protocol.messages import Failed, Sessions
from engine.protocol.recovery import (
    DRAINING,
    CourseMessage,
    CourseReply,
    HoldReply,
    HoldRequest,
    Notice,
    ReplayRequest,
    ReplayUntil,
    RouteRequest,
)
from engine.swarm.links import Links

logger = logging.getLogger(__name__)

PREFILL_TOKEN_S = 0.1
"""Patience for each token that has to be computed before the first news, in seconds."""
REACH_S = 2.5
"""What a stage may take to reach the next one, beyond its answer."""
_BLAMELESS = frozenset({"lease_lapsed", "peer_unreachable"})
"""Codes of FAILED that do not speak against the stage that sends it."""

Held = dict[Hop, dict[SessionId, HopState]]


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


class Journey:
    """A batch on its way.

    Args:
        batch: Its sequences and news.
        use: Whose prefixes may be taken over.
        links: To the stages.
        view: Who serves what.
        spec: The model.
        config: Time-outs.
        asker: Asks the stages.
        live: Other sequences along a route.
    """

    def __init__(
        self,
        batch: Batch,
        use: PrefixUse,
        links: Links,
        view: SwarmView,
        spec: ModelSpec,
        config: ClientConfig,
        asker: Asker,
        live: Callable[[Route], list[tuple[SessionId, list[int]]]],
    ) -> None:
        self.batch = batch
        self.route: Route | None = None
        self.heading: Route | None = None
        """The route of the present attempt, be it only just asked for."""
        self.avoid: set[PeerId] = set()
        """Peers that have just failed us."""
        self.has_stalled = False
        """Nothing came for long, though no stage was lost."""
        self.has_advanced = False
        """The last attempt brought the stages further, if no token."""
        self._progress = 0
        self._broken: set[tuple[PeerId, PeerId]] = set()
        """Pairs of stages that cannot reach each other."""
        self._leaving: set[PeerId] = set()
        """Stages that still serve, but better others did."""
        self._answered: set[PeerId] = set()
        """Stages that hold the batch in the present attempt."""
        self._settled: set[PeerId] = set()
        """Those of them whose way on is ready."""
        self._opened: set[PeerId] = set()
        self._use = use
        self._links = links
        self._view = view
        self._spec = spec
        self._config = config
        self._asker = asker
        self._live = live
        self._opener = Opener(asker, config, spec.model_id)
        self._lease_s = 0.0
        self._keeper: asyncio.Task[None] | None = None

    async def establish(self) -> None:
        """Begin an attempt: get everything under way along a route that works.

        Raises:
            NoRoute: Some block is served by nobody.
            EngineError: A stage failed meanwhile; try again.
        """
        batch = self.batch
        batch.begin_attempt()
        self._answered, self._settled = set(), set()
        waiting = batch.waiting
        held = await self._hold(waiting)
        progress = sum(state.position for states in held.values() for state in states.values())
        self.has_advanced = progress > self._progress
        self._progress = max(progress, self._progress)
        if self.has_stalled:
            self._blame_laggard(held, waiting)
            self.has_stalled = False
        snapshot = self._view.snapshot()
        route = self._find(snapshot, held, waiting)
        new = [hop for hop in route.hops if hop not in held]
        self.heading = route
        try:
            states = await self._open(new, route, waiting, held, snapshot)
            flows = [
                plan_flow(len(sequence.ids), [states[hop][sequence.session] for hop in route.hops])
                for sequence in waiting
            ]
            await self._lead(route, waiting, flows, held)
            await self._replay(route, waiting, flows)
        except BaseException:
            self._close({hop.peer for hop in new})
            raise
        if self.route is not None:
            batch.recoveries.stages_replaced += len(new)
        self.route = route
        self._close(self._opened - {hop.peer for hop in route.hops})
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="keep-sessions")
        if not batch.has_failed:
            self._send_ids(route, waiting, flows)

    @property
    def names(self) -> str:
        """The stages of the route, for a person."""
        hops = () if self.route is None else self.route.hops
        return ", ".join(f"…{short(hop.peer)}" for hop in hops)

    def give_all_another_chance(self) -> bool:
        """Forget who failed; they may be the only ones there are. Whether there were any."""
        had_any = bool(self.avoid or self._broken)
        self.avoid.clear()
        self._broken.clear()
        return had_any

    def end(self) -> None:
        """Free the sessions everywhere."""
        if self._keeper is not None:
            self._keeper.cancel()
        self._close(set(self._opened))

    # News from stages -----------------------------------------------------------------------

    def failed(self, peer: PeerId, message: Failed) -> None:
        """Sessions are over at a stage."""
        if peer not in self._answered:
            return  # of an older attempt, or no stage of ours
        if message.peer:
            self.avoid.add(PeerId(message.peer))
        elif message.code not in _BLAMELESS:
            self.avoid.add(peer)
        self.batch.fail(StageRefused(message.reason))

    def noticed(self, peer: PeerId, message: Notice) -> None:
        """A stage tells that the way on or back is broken, or that it will leave."""
        if peer not in self._settled or message.attempt != self.batch.attempt:
            return
        if message.code == DRAINING:
            self._leaving.add(peer)
            if self.route is None or not self._has_way_around(self.route):
                logger.info("…%s will pause; there is nobody to take its place yet", short(peer))
                return
            self.batch.fail(StageRefused(message.reason))
        elif message.code == PeerSilent.code:
            other = PeerId(message.peer)
            self._broken |= {(peer, other), (other, peer)}
        self.batch.fail(PeerUnreachable(message.reason))

    def lost(self, peer: PeerId, error: PeerError) -> None:
        """Our own link to a stage is gone."""
        if isinstance(error, PeerSilent) and peer in self._opened:
            self.avoid.add(peer)  # it would not answer now either
        if peer in self._settled:
            self.batch.fail(error)

    # The steps of an attempt ----------------------------------------------------------------

    async def _hold(self, waiting: SequenceOf[Sequence]) -> Held:
        """Learn which stages of the last route still have every sequence, and how far."""
        sessions = tuple(sequence.session for sequence in waiting)
        snapshot = self._view.snapshot()

        async def hold_at(hop: Hop) -> dict[SessionId, HopState]:
            stage = snapshot.stage(hop.peer)
            request = HoldRequest(
                request=self._asker.number(), attempt=self.batch.attempt, sessions=sessions
            )
            ask = functools.partial(
                self._asker.ask,
                hop.peer,
                Kind.HOLD,
                request,
                HoldReply,
                self._config.hold_timeout_s,
                () if stage is None else stage.addresses,
            )
            try:
                try:
                    reply = await ask()
                except PeerUnreachable as error:
                    if isinstance(error, PeerSilent):
                        raise
                    reply = await ask()  # over a new link, if that which broke was an old one
            except PeerError as error:
                logger.info("…%s is lost: %s", short(hop.peer), error)
                self.avoid.add(hop.peer)
                return {}
            return {
                SessionId(held.session): HopState(held.position, held.kept_from)
                for held in reply.sessions
            }

        hops = () if self.route is None else self.route.hops
        asked = [hop for hop in hops if hop.peer not in self.avoid]
        answers = await asyncio.gather(*map(hold_at, asked))
        held = {
            hop: states
            for hop, states in zip(asked, answers, strict=True)
            if all(session in states for session in sessions)
        }
        self._answered |= {hop.peer for hop in held}
        return held

    def _blame_laggard(self, held: Held, waiting: SequenceOf[Sequence]) -> None:
        """After a silence: the first stage that has not computed the last row is what hangs."""
        for hop, states in held.items():
            if any(states[sequence.session].position < len(sequence.ids) for sequence in waiting):
                self._leaving.add(hop.peer)
                return

    def _find(self, snapshot: SwarmSnapshot, held: Held, waiting: SequenceOf[Sequence]) -> Route:
        rooms = [kv_room(s.capacity_tokens, self._config.kv_offload) for s in waiting]
        links_s = link_times(self._links, snapshot)

        def find(leaving: set[PeerId]) -> Route:
            return find_route(
                snapshot,
                need_tokens=sum(room.device for room in rooms),
                need_ram_tokens=sum(room.ram for room in rooms),
                avoid=frozenset(self.avoid | leaving),
                link_s=links_s,
                kept=[hop for hop in held if hop.peer not in leaving],
                broken=frozenset(self._broken),
            )

        if self._leaving:
            with contextlib.suppress(NoRoute):
                return find(self._leaving)
        return find(set())

    def _has_way_around(self, old: Route) -> bool:
        held: Held = {hop: {} for hop in old.hops if hop.peer not in self._leaving}
        route = None
        with contextlib.suppress(NoRoute):
            route = self._find(self._view.snapshot(), held, self.batch.waiting)
        return route is not None and all(hop.peer not in self._leaving for hop in route.hops)

    async def _open(
        self,
        new: SequenceOf[Hop],
        route: Route,
        waiting: SequenceOf[Sequence],
        held: Held,
        snapshot: SwarmSnapshot,
    ) -> Held:
        """Open the batch at new hops; the states of all hops of the route."""
        if not new:
            return held
        peers = {hop.peer for hop in new}
        self._opened |= peers
        # Before they are asked: whatever they tell of this attempt from now on counts.
        self._answered |= peers
        self._settled |= peers
        begin = self._beginnings(route, waiting)
        try:
            opened = await self._opener.open(
                new,
                route,
                waiting,
                begin,
                self._use,
                attempt=self.batch.attempt,
                pass_rows=self._pass_rows(route, snapshot, len(waiting)),
                snapshot=snapshot,
            )
        except NotOpened as refusal:
            self.avoid |= refusal.peers
            raise refusal.error from refusal
        self._lease_s = max(1.0, opened.lease_s)
        offers = opened.offers
        if len(new) == len(route.hops):
            agreed = agree(waiting, begin, opened)
            offers = dict.fromkeys(offers, tuple(agreed))
            for sequence, tokens in zip(waiting, agreed, strict=True):
                sequence.reused_tokens = tokens
        states = dict(held)
        for hop in new:
            states[hop] = {
                sequence.session: HopState(tokens, tokens)
                for sequence, tokens in zip(waiting, offers[hop.peer], strict=True)
            }
        return states

    def _beginnings(self, route: Route, waiting: SequenceOf[Sequence]) -> list[Beginning]:
        """What the sequences need not compute, as far as we know."""
        if self._use is PrefixUse.NONE:
            return [Beginning()] * len(waiting)
        new = [(sequence.session, sequence.ids) for sequence in waiting]
        if self.batch.attempt:  # another one may have failed them the first time
            return [beginnings([sequence], ())[0] for sequence in new]
        own = dict(new)
        return beginnings(new, [other for other in self._live(route) if other[0] not in own])

    async def _lead(
        self,
        route: Route,
        waiting: SequenceOf[Sequence],
        flows: SequenceOf[tuple[HopFlow, ...]],
        held: Held,
    ) -> None:
        """Tell every stage its new way, except new ones that simply send on what they compute."""
        way = hop_messages(route)

        async def lead(place: int, hop: Hop) -> None:
            request = RouteRequest(
                request=self._asker.number(),
                attempt=self.batch.attempt,
                hops=way,
                sessions=tuple(
                    CourseMessage(session=sequence.session, send_from=flow[place].send_from)
                    for sequence, flow in zip(waiting, flows, strict=True)
                ),
            )
            limit_s = self._config.hold_timeout_s + REACH_S
            await self._order(hop, Kind.ROUTE, request, limit_s)

        changed = [
            (place, hop)
            for place, hop in enumerate(route.hops)
            if hop in held
            or (
                place < len(route.hops) - 1
                and any(flow[place].send_from > flow[place].compute_from for flow in flows)
            )
        ]
        await _all(lead(place, hop) for place, hop in changed)

    async def _replay(
        self,
        route: Route,
        waiting: SequenceOf[Sequence],
        flows: SequenceOf[tuple[HopFlow, ...]],
    ) -> None:
        """Let stages send on what they have kept and the next one lacks."""

        async def replay(hop: Hop, wanted: tuple[ReplayUntil, ...], tokens: int) -> None:
            request = ReplayRequest(
                request=self._asker.number(), attempt=self.batch.attempt, sessions=wanted
            )
            limit_s = self._config.hold_timeout_s + PREFILL_TOKEN_S * tokens
            await self._order(hop, Kind.REPLAY, request, limit_s)

        orders = []
        for place, hop in enumerate(route.hops):
            ends = {
                sequence.session: flow[place]
                for sequence, flow in zip(waiting, flows, strict=True)
                if flow[place].replay_until > flow[place].send_from
            }
            if ends:
                wanted = tuple(
                    ReplayUntil(session=session, end=flow.replay_until)
                    for session, flow in ends.items()
                )
                tokens = sum(flow.replay_until - flow.send_from for flow in ends.values())
                orders.append(replay(hop, wanted, tokens))
        await _all(orders)

    async def _order(
        self, hop: Hop, kind: Kind, request: RouteRequest | ReplayRequest, limit_s: float
    ) -> None:
        try:
            reply = await self._asker.ask(hop.peer, kind, request, CourseReply, limit_s)
        except PeerError:
            self.avoid.add(hop.peer)
            raise
        if reply.refused:
            if reply.peer:
                other = PeerId(reply.peer)
                self._broken |= {(hop.peer, other), (other, hop.peer)}
            kind_of = PeerUnreachable if reply.code == PeerUnreachable.code else StageRefused
            raise kind_of(reply.refused)
        self._settled.add(hop.peer)

    def _send_ids(
        self,
        route: Route,
        waiting: SequenceOf[Sequence],
        flows: SequenceOf[tuple[HopFlow, ...]],
    ) -> None:
        starts = [flow[0].compute_from for flow in flows]
        rows = tuple(
            Row(s.session, start, len(s.ids) - start, self.batch.attempt, RowFlags.SAMPLE)
            for s, start in zip(waiting, starts, strict=True)
        )
        ids = np.concatenate(
            [np.array(s.ids[start:], np.int32) for s, start in zip(waiting, starts, strict=True)]
        )
        self.batch.prefill_tokens = sum(
            len(s.ids) - min(hop.compute_from for hop in flow)
            for s, flow in zip(waiting, flows, strict=True)
        )
        if self.batch.attempt:
            self.batch.recoveries.resent_ids += len(ids)
        self._links.send(route.first, Frame(Kind.STEP, b"", rows, ids))

    def _pass_rows(self, route: Route, snapshot: SwarmSnapshot, batch_size: int) -> int:
        """Rows of a micro-batch."""
        number = self._config.micro_batches
        if not number:
            # Float32 at most; what it is exactly, only the stages know.
            row_bytes = 4 * self._spec.hidden_size
            costs = hop_costs(route, snapshot, link_times(self._links, snapshot), row_bytes)
            number = choose_micro_batches(costs, batch_size)
        return -(-batch_size // min(number, batch_size))

    # Leases ---------------------------------------------------------------------------------

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            peers = [hop.peer for hop in self.route.hops] if self.route else []
            self._asker.tell(peers, Kind.KEEP, Sessions(sessions=tuple(self.batch.sequences)))
            if self.route and self._leaving & set(peers) and self._has_way_around(self.route):
                self.batch.fail(StageRefused("A stage will pause, and another can take its place."))

    def _close(self, peers: set[PeerId]) -> None:
        self._opened -= peers
        sessions = Sessions(sessions=tuple(self.batch.sequences))
        self._asker.tell(sorted(peers), Kind.CLOSE, sessions)


async def _all(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all steps, also when one fails; then raise what the first to fail raised."""
    results = await asyncio.gather(*steps, return_exceptions=True)
    for result in results:
        if result is not None:
            raise result


def link_times(links: Links, snapshot: SwarmSnapshot) -> dict[PeerId, float]:
    """One-way time to each stage, in seconds, as far as known."""
    times = {links.local_peer: 0.0}
    for stage in snapshot.stages:
        rtt_s = links.rtt_s(stage.peer)
        if stage.peer not in times and rtt_s is not None:
            times[stage.peer] = rtt_s / 2
    return times
