"""The agent's side of a stage: frames in, forward passes through the worker, frames out.

Follow a token: `_on_step` checks a frame's rows (`server.arrivals`) and queues them; the forward loop
(`server.passes`) computes them, batch by batch, and `server.emit` makes the frames that go onward:
hidden states to the next stage or, from the last one, each new id to the first stage and to the
client at the same time (the closed ring). How a session ends: `server.endings`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from engine.config import StageConfig
from engine.core.clock import Clock
from engine.core.errors import (
    EngineError,
    EnginePaused,
    PeerDropped,
    PeerError,
    PeerUnreachable,
    StageRefused,
    WorkerFailed,
)
from engine.core.ids import PeerId, SessionId
from engine.core.kv_room import KvRoom
from engine.core.plans import Span
from engine.protocol.frames import Frame, Kind, split_payload
from engine.protocol.messages import (
    MAX_STATS_LINKS,
    OpenReply,
    OpenRequest,
    Sessions,
    StatsReply,
    StatsRequest,
    message_frame,
    parse,
)
from engine.protocol.recovery import (
    HoldRequest,
    ReplayRequest,
    RouteRequest,
)
from engine.server.arrivals import DraftRefused, RowsMissing, check_expected, check_row
from engine.server.endings import Endings
from engine.server.expectation import Expectation
from engine.server.pace import Pace, PassCost
from engine.server.recovery import refusal
from engine.server.scheduler import Work
from engine.server.serving import Serving
from engine.server.servings import Servings
from engine.server.worker_process import LoadOrder, WorkerProcess
from engine.swarm.links import Links


class StageHandler:
    """Serves this node's stage to the swarm while a worker is attached; refuses otherwise.

    While the node moves to other blocks there are two workers: one serves the sessions that began
    before, the other those that begin now. A session is with one of them.
    """

    def __init__(
        self, links: Links, clock: Clock, config: StageConfig, on_change: Callable[[], None]
    ) -> None:
        """`on_change` is called when the number of sessions changes."""
        self._links = links
        self._clock = clock
        self._config = config
        self._closed_reason = EnginePaused("This stage is not serving now; try another one.")
        self._servings = Servings(links.local_peer)
        self._endings = Endings(self._servings, links, clock, on_change)
        self.pace = Pace()
        links.on([Kind.OPEN], self._on_open)
        links.on([Kind.STEP], self._on_step)
        links.on([Kind.EXPECT], self._on_expect)
        links.on([Kind.KEEP, Kind.CLOSE, Kind.LEAD], self._on_sessions)
        links.on([Kind.HOLD, Kind.ROUTE, Kind.REPLAY], self._on_repair)
        links.on([Kind.STATS], self._on_stats)
        links.on_lost(self._on_lost)

    @property
    def num_sessions(self) -> int:
        """Sessions that pass through this node now."""
        return sum(len(serving.table) for serving in self._servings)

    @property
    def kv_tokens(self) -> tuple[KvRoom, KvRoom]:
        """KV room in tokens, through the whole announced span: (free, total)."""
        serving = self._servings.announced
        if serving is None:
            return (KvRoom(0, 0), KvRoom(0, 0))
        return (serving.table.free_tokens, serving.table.total_tokens)

    @property
    def decode_cost(self) -> PassCost:
        """Of a pass through the announced span."""
        serving = self._servings.announced
        return PassCost() if serving is None else serving.decode_cost

    @property
    def uplink_bytes_per_s(self) -> float:
        """Rate of our line to other stages, as they have measured it; 0 while unknown."""
        facts = self._links.neighbours.link_facts().values()
        return max((link.bandwidth_bytes_per_s or 0.0 for link in facts), default=0.0)

    def close(self, reason: EnginePaused) -> None:
        """Refuse new sessions with `reason` until the next `serve`."""
        self._closed_reason = reason

    def lead_with(self, order: LoadOrder) -> None:
        """Let these be the blocks that are announced, of those that are served."""
        self._servings.lead_with(order)

    async def drain(self) -> None:
        """Wait until the last session has ended or gone elsewhere, or for the limit; take no more."""
        await self._drain(list(self._servings), None)

    async def retire(self, order: LoadOrder) -> None:
        """Do so with the sessions of these blocks; the others of this node are served on."""
        now = next((s.table.span for s in self._servings if s.order is not order), None)
        await self._drain([s for s in self._servings if s.order is order], now)

    async def _drain(self, servings: list[Serving], moved_to: Span | None) -> None:
        for serving in servings:
            serving.is_draining = True
            serving.recovery.drain(moved_to)
        self._endings.sessions_changed()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._config.drain_limit_s):
                for serving in servings:
                    await serving.empty.wait()

    async def serve(self, worker: WorkerProcess, order: LoadOrder) -> None:
        """Serve until cancelled or the worker ends.

        Raises:
            WorkerFailed: The worker ended by itself; its sessions' clients have been told.
        """
        serving: Serving | None = None
        reason, code = "This stage has paused.", EnginePaused.code
        try:
            async with asyncio.TaskGroup() as tasks:
                serving = Serving.build(
                    self._links,
                    self._clock,
                    self._config,
                    worker,
                    order,
                    self.pace,
                    tasks,
                    send=self._send,
                    fail=self._endings.fail_row,
                )
                self._servings.add(serving)
                self._endings.sessions_changed()
                tasks.create_task(self._endings.end_lapsed(serving))
                tasks.create_task(self._watch(worker))
                tasks.create_task(serving.passes.run())
                tasks.create_task(serving.recovery.compress_kept())
        except ExceptionGroup as group:
            failed, others = group.split(WorkerFailed)
            if failed is None or others is not None:
                raise
            reason, code = worker.epitaph(), WorkerFailed.code
            raise WorkerFailed(reason) from group
        finally:
            if serving is not None:
                self._servings.remove(serving)
                self._endings.give_up(serving, code, reason)

    def open_failed(self, sessions: tuple[SessionId, ...], code: str, text: str) -> None:
        """The worker could not begin, or keep, sessions that we had let in."""
        for serving in self._servings:
            serving.reuse.failed(sessions)
        self._endings.drop(sessions, code, text)

    # Frames in ------------------------------------------------------------------------------

    def _on_open(self, peer: PeerId, frame: Frame) -> None:
        request = parse(frame, OpenRequest)
        try:
            if not self._servings:
                raise self._closed_reason
            serving = self._servings.for_route(request.route())
            others = [other for other in self._servings if other is not serving]
            self._supersede(serving, request, peer)
            names = {SessionId(sequence.session) for sequence in request.sequences}
            for other in others:
                names -= set(other.table.superseded(request, peer))
            if any(self._servings.holder(name) in others for name in names):
                raise StageRefused("A session id of the request is in use already.")
            reused_tokens = serving.reuse.open(request, peer, self._clock.monotonic_s())
            for other in others:
                self._supersede(other, request, peer)
            reply = OpenReply(
                request=request.request,
                lease_s=self._config.lease_s,
                reused_tokens=reused_tokens,
                no_replica=serving.why_no_replica(request),
                replica_s=self.pace.replica.mean_s,
            )
        except EngineError as error:
            reply = OpenReply(request=request.request, refused=str(error), code=error.code)
        self._links.answer(peer, message_frame(Kind.OPENED, reply))
        self._endings.sessions_changed()

    def _supersede(self, serving: Serving, request: OpenRequest, owner: PeerId) -> None:
        """Drop what a request opens anew."""
        self._endings.end(serving, serving.table.drop(serving.table.superseded(request, owner)))

    def _on_sessions(self, peer: PeerId, frame: Frame) -> None:
        message = parse(frame, Sessions)
        for serving in self._servings:
            if frame.kind is Kind.KEEP:
                serving.table.keep(message.ids(), peer, self._clock.monotonic_s())
            elif frame.kind is Kind.LEAD:
                serving.table.open_rings(message.ids(), peer)
            else:
                self._endings.end(serving, serving.table.close(message.ids(), peer), keep=True)

    def _on_repair(self, peer: PeerId, frame: Frame) -> None:
        if not self._servings:
            self._links.answer(peer, refusal(frame, self._closed_reason))
        elif frame.kind is Kind.HOLD:
            held = parse(frame, HoldRequest)
            self._servings.recovery_of(held.sessions).hold(peer, held)
        elif frame.kind is Kind.ROUTE:
            led = parse(frame, RouteRequest)
            self._servings.recovery_of(each.session for each in led.sessions).route(peer, led)
        else:
            replayed = parse(frame, ReplayRequest)
            self._servings.recovery_of(each.session for each in replayed.sessions).replay(
                peer, replayed
            )

    def _on_step(self, peer: PeerId, frame: Frame) -> None:
        started_s = self._clock.monotonic_s()
        parts = split_payload(frame) if frame.width else [None] * len(frame.rows)
        at = 0
        for row, hidden in zip(frame.rows, parts, strict=True):
            ids = frame.ids[at : at + row.count]
            at += row.count
            serving = self._servings.holder(row.session)
            session = None if serving is None else serving.table.get(row.session)
            if serving is None or session is None:
                continue  # closed meanwhile, or we have told its client that we serve no more
            if session.attempt != row.attempt or session.is_deaf:
                continue  # a stale attempt, or after a loss
            if row.goes_on and session.accepts_from(peer) and session.drafts.is_void(row, ids):
                continue  # what it goes on from has been refused since
            waiting_tokens = serving.passes.waiting_tokens(session)
            try:
                check_row(
                    peer, session, row, ids, frame, serving.order, waiting_tokens=waiting_tokens
                )
            except RowsMissing as error:
                if peer != session.previous_peer:
                    raise  # the owner's own; what comes round the ring is lost without a fault
                serving.recovery.rows_missing(session, peer, str(error))
                continue
            except DraftRefused as error:
                serving.recovery.draft_refused(session, str(error))
                continue
            if not row.goes_on:
                serving.passes.drop_void(session)
            if session.is_first and not waiting_tokens:
                row, ids = session.with_expected(row, ids)
            session.arrived(row, ids)
            serving.reuse.arrived(session, row)
            serving.passes.add(
                Work(
                    (session.owner, session.request),
                    session.span,
                    row,
                    ids,
                    () if hidden is None else (hidden,),
                    frame.dtype,
                    frame.width,
                    started_s,
                    session.pass_rows,
                )
            )
        self.pace.encode_s += self._clock.monotonic_s() - started_s

    def _on_expect(self, peer: PeerId, frame: Frame) -> None:
        at = 0
        for row in frame.rows:
            ids = frame.ids[at : at + row.count]
            at += row.count
            serving = self._servings.holder(row.session)
            session = None if serving is None else serving.table.get(row.session)
            if serving is None or session is None:
                continue
            if session.attempt != row.attempt or session.is_deaf:
                continue
            try:
                tree = check_expected(peer, session, row, ids, frame, serving.order)
            except DraftRefused as error:
                serving.recovery.draft_refused(session, str(error))
                continue
            session.expectation = session.expectation or Expectation()
            session.expectation.take(row.position, tree)

    def _on_stats(self, peer: PeerId, frame: Frame) -> None:
        request = parse(frame, StatsRequest)
        links = list(self._links.neighbours.link_facts().items())[-MAX_STATS_LINKS:]
        reply = StatsReply(
            request=request.request,
            forwards=self.pace.forwards,
            tokens=self.pace.tokens,
            reused_tokens=self.pace.reused_tokens,
            compute_s=self.pace.compute_s,
            cpu_s=self.pace.cpu_s,
            encode_s=self.pace.encode_s + self._links.neighbours.codec_s(),
            wait_s=self.pace.wait_s,
            local_s=self.pace.local_s,
            replica_rounds=self.pace.replica.rounds,
            replica_disagreements=self.pace.replica.disagreements,
            replica_max_difference=self.pace.replica.max_difference,
            replica_s=self.pace.replica.seconds,
            compactions_before=self.pace.compaction.before,
            compaction_before_s=self.pace.compaction.before_s,
            compactions_after=self.pace.compaction.after,
            compaction_after_s=self.pace.compaction.after_s,
            kept_bytes=sum(serving.kept.num_bytes for serving in self._servings),
            replayed_tokens=self.pace.replayed_tokens,
            sent_bytes={
                str(to): count for to, count in self._links.neighbours.sent_bytes().items()
            },
            links={str(to): facts for to, facts in links},
        )
        self._links.answer(peer, message_frame(Kind.STATS_REPLY, reply))

    def _on_lost(self, peer: PeerId, error: PeerError) -> None:
        for serving in self._servings:
            if isinstance(error, PeerDropped):
                self._endings.end(serving, serving.table.drop_owned(peer))
            serving.recovery.lost(peer, error)

    async def _watch(self, worker: WorkerProcess) -> None:
        await worker.wait_dead()
        raise WorkerFailed(worker.epitaph())

    def _send(self, peer: PeerId, frame: Frame) -> None:
        """Send rows on; when a peer cannot be reached, the clients concerned must know."""
        try:
            self._links.send(peer, frame)
        except PeerUnreachable as error:
            for serving in self._servings:
                serving.recovery.undelivered(peer, frame, error)
