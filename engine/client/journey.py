"""One batch's way through the swarm: opened once, and repaired whenever a part of it is lost.

`establish` is all of it: put the stages that may live on hold and learn how far they are, keep their
places in the new route and fill the gaps with others, open the batch there, plan who sends what
(`client.flow`), lead every stage whose way has changed, let them replay what they have kept, and
send ids. The first time there is nobody to hold, and the rest is the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from typing import Protocol

import numpy as np

from engine.client.asking import Asker
from engine.client.batch import AnswerMisfits, Batch, Sequence
from engine.client.flow import plan_flow
from engine.client.leading import Leading
from engine.client.opening import Held, NotOpened, Opener
from engine.client.repair import Flows, Repair, StepFailed
from engine.client.ways import Ways
from engine.config import ClientConfig
from engine.core.errors import (
    PeerDropped,
    PeerError,
    PeerSilent,
    PeerUnreachable,
    RemoteProtocolError,
    StageRefused,
)
from engine.core.generation import PrefixUse
from engine.core.ids import PeerId, SessionId, short
from engine.core.model_spec import ModelSpec
from engine.core.plans import Hop, Route, Span
from engine.core.snapshot import StageState, SwarmSnapshot
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import Failed, Sessions
from engine.protocol.recovery import DRAFT_REFUSED, DRAINING, MOVED, Notice
from engine.protocol.rows import Row
from engine.swarm.links import Links

logger = logging.getLogger(__name__)

_BLAMELESS = frozenset({"lease_lapsed", "peer_unreachable"})
"""Codes of FAILED that do not speak against the stage that sends it."""


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
        first: The route to begin with; None: the best one.
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
        first: Route | None = None,
    ) -> None:
        self.batch = batch
        self.route: Route | None = None
        self.heading: Route | None = None
        """The route of the present attempt, be it only just asked for."""
        self.ways = Ways(links, config, first)
        self.last_error = ""
        """What the log has been told last."""
        self.has_stalled = False
        """Nothing came for long, though no stage was lost."""
        self.has_advanced = False
        """The last attempt brought the stages further, if no token."""
        self._progress = 0
        self._answered: set[PeerId] = set()
        """Stages that hold the batch in the present attempt."""
        self._settled: set[PeerId] = set()
        """Those of them whose way on is ready."""
        self._opened: set[PeerId] = set()
        self._links = links
        self._view = view
        self._config = config
        self._asker = asker
        self._vocab_size = spec.vocab_size
        self._leading = Leading(batch, links, asker)
        self._opener = Opener(asker, links, config, spec, use, live)
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
        repair = Repair(self._asker, self._config, batch.attempt, waiting)
        held = await self._hold(repair)
        lengths = {sequence.session: len(sequence.ids) for sequence in waiting}
        progress = sum(
            min(states[session].position, length)  # whatever a stage claims
            for states in held.values()
            for session, length in lengths.items()
        )
        self.has_advanced = progress > self._progress
        self._progress = max(progress, self._progress)
        if self.has_stalled:
            self._blame_laggard(held, waiting)
            self.has_stalled = False
        snapshot = self._view.snapshot()
        route, held = self.ways.find(snapshot, held, waiting)
        new = [hop for hop in route.hops if hop not in held]
        self.heading = route
        try:
            states = await self._open(new, route, waiting, held, snapshot)
            flows = [
                plan_flow(len(sequence.ids), [states[hop][sequence.session] for hop in route.hops])
                for sequence in waiting
            ]
            await repair.lead(route, flows, held, self._settled.add)
            await repair.replay(route, flows)
        except StepFailed as failure:
            self._undo(new)
            if failure.hangs is not None:
                self.ways.avoid.add(failure.hangs)
            if failure.parted is not None:
                self.ways.part(*failure.parted)
            raise failure.error from failure
        except BaseException:
            self._undo(new)
            raise
        if self.route is not None:
            batch.recoveries.stages_replaced += len(new)
        self.ways.settled(held)
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

    def let_leavers_go(self) -> None:
        """Free the sessions at stages that wait for their end before they leave.

        To be called when there is no way: such a stage may be about to take the very blocks that
        we wait for.
        """
        stages = self._view.snapshot().stages
        draining = {stage.peer for stage in stages if stage.state is StageState.DRAINING}
        self._close(self._opened & (self.ways.leaving | draining))

    def end(self) -> None:
        """Free the sessions everywhere."""
        if self._keeper is not None:
            self._keeper.cancel()
        self._leading.end()
        self._close(set(self._opened))

    # News from stages -----------------------------------------------------------------------

    def failed(self, peer: PeerId, message: Failed) -> None:
        """Sessions are over at a stage."""
        if peer not in self._answered:
            return  # of an older attempt, or no stage of ours
        if message.code not in _BLAMELESS:
            self.ways.avoid.add(peer)
        self.batch.fail(StageRefused(message.reason))

    def noticed(self, peer: PeerId, message: Notice) -> None:
        """A stage tells that the way on or back is broken, or that it will leave."""
        if peer not in self._settled or message.attempt != self.batch.attempt:
            return
        if message.peer and PeerId(message.peer) not in self._neighbours(peer):
            return  # it cannot know
        if message.code in (DRAINING, MOVED):
            if message.code == MOVED:
                self.ways.moved[peer] = Span(message.start, message.end)
            else:
                self.ways.leaving.add(peer)
            if self.route is None or not self._has_way_around(self.route):
                logger.info("…%s will leave; there is nobody to take its place yet", short(peer))
                return
            self.batch.fail(StageRefused(message.reason))
        elif message.code == PeerSilent.code:
            self.ways.part(peer, PeerId(message.peer))
        elif message.code == PeerDropped.code:
            self.ways.avoid.add(PeerId(message.peer))
        elif message.code == DRAFT_REFUSED:
            self.batch.stop_drafting()
        self.batch.fail(PeerUnreachable(message.reason))

    def lost(self, peer: PeerId, error: PeerError) -> None:
        """Our own link to a stage is gone."""
        if isinstance(error, PeerSilent) and peer in self._opened:
            self.ways.avoid.add(peer)  # it would not answer now either
        if peer in self._settled:
            self.batch.fail(error)

    def _neighbours(self, peer: PeerId) -> set[PeerId]:
        """Whom a stage of the present attempt sends to and gets from, and itself."""
        ring = [] if self.heading is None else [hop.peer for hop in self.heading.hops]
        if peer not in ring:
            return set()
        at = ring.index(peer)
        return {ring[at - 1], peer, ring[(at + 1) % len(ring)]}

    # The steps of an attempt ----------------------------------------------------------------

    async def _hold(self, repair: Repair) -> Held:
        """Learn which stages of the last route still have every sequence, and how far."""
        hops = () if self.route is None else self.route.hops
        asked = [hop for hop in hops if hop.peer not in self.ways.avoid]
        held: Held = {}
        for hop, answer in (await repair.hold(asked, self._view.snapshot())).items():
            if answer is None:
                self.ways.avoid.add(hop.peer)
            else:
                held |= answer
        self._answered |= {hop.peer for hop in held}
        return held

    def _blame_laggard(self, held: Held, waiting: SequenceOf[Sequence]) -> None:
        """After a silence: the first stage that has not computed the last row is what hangs."""
        for hop, states in held.items():
            if any(states[sequence.session].position < len(sequence.ids) for sequence in waiting):
                self.ways.leaving.add(hop.peer)
                return

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
        try:
            states, self._lease_s = await self._opener.open(
                new, route, waiting, self.batch.attempt, snapshot
            )
        except NotOpened as refusal:
            self.ways.refused(refusal.peers)
            raise refusal.error from refusal
        return held | states

    def _send_ids(self, route: Route, waiting: SequenceOf[Sequence], flows: Flows) -> None:
        starts = [flow[0].compute_from for flow in flows]
        rows = tuple(
            Row(s.session, start, len(s.ids) - start, self.batch.attempt, s.flags)
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

    def go_on(self, sequences: SequenceOf[Sequence]) -> None:
        """Send the next rows of sequences that wait for them, with what their drafts propose."""
        if self.route is not None and not self.batch.has_failed:
            self._leading.go_on(self.route, sequences)

    def refused(self, sequence: Sequence, row: Row) -> None:
        """Draw the token that the last stage has left to us.

        Raises:
            AnswerMisfits: It may not.
            RemoteProtocolError: Not so.
        """
        if self.route is not None and not self.batch.has_failed:
            self._leading.draw_again(self.route, sequence, row, self._vocab_size)

    def misfits(self, error: AnswerMisfits) -> None:
        """Go on without drafts after an answer that tells of others; if there were none, elsewhere.

        Nobody is dropped where it may have been another: a stage passes on what those after it go by.

        Raises:
            RemoteProtocolError: It was the last stage, because there is no other but ours.
        """
        assert self.route is not None, "nobody answers before there is one"
        suspects = {hop.peer for hop in self.route.hops} - {self._links.local_peer}
        if suspects <= {self.route.last}:
            raise RemoteProtocolError(str(error)) from error
        logger.warning("an answer does not fit: %s", error)
        if self.batch.drafting is None:
            self.ways.avoid |= suspects
        self.batch.stop_drafting()
        self.batch.fail(PeerUnreachable(str(error)))

    def consider(self, sequences: SequenceOf[Sequence]) -> None:
        """Open the ring of those that decode plainly, where drafting pays."""
        if self.route is not None and not self.batch.has_failed:
            self._leading.consider(self.route, sequences)

    # Leases ---------------------------------------------------------------------------------

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            peers = [hop.peer for hop in self.route.hops] if self.route else []
            self._asker.tell(peers, Kind.KEEP, Sessions(sessions=tuple(self.batch.sequences)))
            left = self.ways.left & set(peers)
            if self.route and left and self._has_way_around(self.route):
                self.batch.fail(StageRefused("A stage will leave, and another can take its place."))

    def _undo(self, new: SequenceOf[Hop]) -> None:
        """Leave stages that were just opened; not where that would end what we still use there."""
        self._close({hop.peer for hop in new} - self.ways.moved.keys())

    def _has_way_around(self, route: Route) -> bool:
        return self.ways.has_way_around(route, self._view.snapshot(), self.batch.waiting)

    def _close(self, peers: set[PeerId]) -> None:
        self._opened -= peers
        sessions = Sessions(sessions=tuple(self.batch.sequences))
        self._asker.tell(sorted(peers), Kind.CLOSE, sessions)
