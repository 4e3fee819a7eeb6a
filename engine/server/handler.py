"""The agent's side of a stage: frames in, forward passes through the worker, frames out.

Follow a token here: `_on_step` checks a frame's rows and queues them; `serve` takes the next batch
from the scheduler and runs it; `_emit` sends hidden states to the next stage or, at the last one,
each new id to the first stage and to the client at the same time (the closed ring, design §2).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from engine.config import StageConfig
from engine.core.clock import Clock
from engine.core.errors import (
    EngineError,
    EnginePaused,
    PeerUnreachable,
    RemoteProtocolError,
    StageRefused,
    WorkerFailed,
)
from engine.core.ids import PeerId, SessionId
from engine.protocol.frames import Dtype, Frame, Kind, Row, RowFlags, split_payload
from engine.protocol.messages import (
    Failed,
    OpenReply,
    OpenRequest,
    Sessions,
    StatsReply,
    StatsRequest,
    message_frame,
    parse,
)
from engine.server.emit import hidden_frames, token_frames
from engine.server.pace import Pace
from engine.server.scheduler import Scheduler, Work
from engine.server.sessions import Session, SessionTable
from engine.server.worker_process import ForwardResult, LoadOrder, WorkerProcess
from engine.swarm.links import Links

logger = logging.getLogger(__name__)

HOUSEKEEPING_S = 1.0


class StageHandler:
    """Serves this node's stage to the swarm while a worker is attached; refuses otherwise."""

    def __init__(
        self, links: Links, clock: Clock, config: StageConfig, on_change: Callable[[], None]
    ) -> None:
        """`on_change` is called when the number of sessions changes."""
        self._links = links
        self._on_change = on_change
        self._clock = clock
        self._config = config
        self._closed_reason = EnginePaused("This stage is not serving now; try another one.")
        self._draining = False
        self._table: SessionTable | None = None
        self._order: LoadOrder | None = None
        self._worker: WorkerProcess | None = None
        self._scheduler = Scheduler()
        self._work_arrived = asyncio.Event()
        self._empty = asyncio.Event()
        self.pace = Pace()
        links.on([Kind.OPEN], self._on_open)
        links.on([Kind.STEP], self._on_step)
        links.on([Kind.KEEP, Kind.CLOSE], self._on_sessions)
        links.on([Kind.STATS], self._on_stats)
        links.on_lost(self._on_lost)

    @property
    def num_sessions(self) -> int:
        """Sessions that pass through this stage now."""
        return 0 if self._table is None else len(self._table)

    @property
    def kv_tokens(self) -> tuple[int, int]:
        """KV room in tokens: (free, total)."""
        return (
            (0, 0) if self._table is None else (self._table.free_tokens, self._table.total_tokens)
        )

    def close(self, reason: EnginePaused) -> None:
        """Refuse new sessions with `reason` until the next `serve`."""
        self._closed_reason = reason

    async def drain(self) -> None:
        """Refuse new sessions and return when the last one has ended, or the limit is reached."""
        self._draining = True
        self._sessions_changed()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._config.drain_limit_s):
                await self._empty.wait()

    async def serve(self, worker: WorkerProcess, order: LoadOrder) -> None:
        """Serve until cancelled or the worker ends.

        Raises:
            WorkerFailed: The worker ended by itself; its sessions' clients have been told.
        """
        element_bytes = 4 if order.dtype is Dtype.FLOAT32 else 2
        self._table = SessionTable(
            local_peer=self._links.local_peer,
            model_id=order.spec.model_id,
            num_blocks=order.spec.num_hidden_layers,
            span=order.span,
            kv_budget_bytes=self._config.kv_budget_bytes,
            block_token_bytes=order.spec.kv_bytes_per_token(1, element_bytes),
            lease_s=self._config.lease_s,
        )
        self._order, self._worker, self._draining = order, worker, False
        reason, code = "This stage has paused.", EnginePaused.code
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_house())
                tasks.create_task(self._watch(worker))
                while True:
                    await self._work_arrived.wait()
                    # Rows that we have just sent to ourselves belong in this pass, or a batch that
                    # was once split by its prefill would stay in two halves.
                    await asyncio.sleep(0)
                    await self._run_batch(worker, order)
        except ExceptionGroup as group:
            failed, others = group.split(WorkerFailed)
            if failed is None or others is not None:
                raise
            reason, code = worker.epitaph(), WorkerFailed.code
            raise WorkerFailed(reason) from group
        finally:
            sessions, self._table = self._table.clear(), None
            self._order = self._worker = None
            self._scheduler = Scheduler()
            self._work_arrived.clear()
            self._tell_failed(sessions, code, reason)
            self._sessions_changed()

    def open_failed(self, sessions: tuple[SessionId, ...], code: str, text: str) -> None:
        """The worker found no memory for sessions that we had let in."""
        if self._table is not None:
            self._end(self._table.drop(sessions), code, text)

    # Frames in ------------------------------------------------------------------------------

    def _on_open(self, peer: PeerId, frame: Frame) -> None:
        request = parse(frame, OpenRequest)
        try:
            if self._table is None or self._worker is None:
                raise self._closed_reason
            if self._draining:
                raise StageRefused("This stage is about to pause and takes no new requests.")
            sessions = self._table.open(request, peer, self._clock.monotonic_s())
            self._worker.open(sessions[0].span, request.sequences)
            reply = OpenReply(request=request.request, lease_s=self._config.lease_s)
        except EngineError as error:
            reply = OpenReply(request=request.request, refused=str(error), code=error.code)
        self._reply(peer, message_frame(Kind.OPENED, reply))
        self._sessions_changed()

    def _on_sessions(self, peer: PeerId, frame: Frame) -> None:
        message = parse(frame, Sessions)
        if self._table is None:
            return
        if frame.kind is Kind.KEEP:
            self._table.keep(message.ids(), peer, self._clock.monotonic_s())
        else:
            self._end(self._table.close(message.ids(), peer))

    def _on_step(self, peer: PeerId, frame: Frame) -> None:
        if self._table is None or self._order is None:
            return  # our clients have been told; these rows were under way
        started_s = self._clock.monotonic_s()
        parts = split_payload(frame) if frame.width else [None] * len(frame.rows)
        at = 0
        for row, hidden in zip(frame.rows, parts, strict=True):
            ids = frame.ids[at : at + row.count]
            at += row.count
            session = self._table.get(row.session)
            if session is None or session.attempt != row.attempt:
                continue  # closed meanwhile, or a stale attempt
            self._check(peer, session, row, ids, frame, self._order)
            session.position = row.position + row.count
            self._scheduler.add(
                Work(
                    session.owner,
                    session.span,
                    row,
                    ids,
                    hidden,
                    frame.dtype,
                    frame.width,
                    started_s,
                )
            )
        self._work_arrived.set()
        self.pace.encode_s += self._clock.monotonic_s() - started_s

    def _check(
        self,
        peer: PeerId,
        session: Session,
        row: Row,
        ids: np.ndarray[tuple[int], np.dtype[np.int32]],
        frame: Frame,
        order: LoadOrder,
    ) -> None:
        if not session.accepts_from(peer):
            raise RemoteProtocolError("The peer sent rows of a session that does not pass it.")
        if row.position > session.position:
            raise RemoteProtocolError("The peer sent rows that leave a gap in their sequence.")
        if row.position + row.count > session.capacity_tokens:
            raise RemoteProtocolError("The peer sent more tokens than it had reserved room for.")
        waiting = self._scheduler.waiting_tokens(session.owner, session.id)
        if waiting + row.count > session.capacity_tokens:  # the same rows over and over
            raise RemoteProtocolError("The peer sent rows faster than their sequence can take.")
        if row.flags & ~RowFlags.SAMPLE:
            raise RemoteProtocolError("The peer sent rows with flags that make no sense here.")
        width = 0 if session.is_first else order.spec.hidden_size
        if frame.width != width or bool(frame.dtype) != bool(width):
            raise RemoteProtocolError(f"The peer sent rows of width {frame.width}, not {width}.")
        if int(ids.min()) < 0 or int(ids.max()) >= order.spec.vocab_size:
            raise RemoteProtocolError("The peer sent token ids outside the vocabulary.")

    def _on_stats(self, peer: PeerId, frame: Frame) -> None:
        request = parse(frame, StatsRequest)
        reply = StatsReply(
            request=request.request,
            forwards=self.pace.forwards,
            tokens=self.pace.tokens,
            compute_s=self.pace.compute_s,
            encode_s=self.pace.encode_s,
            wait_s=self.pace.wait_s,
            local_s=self.pace.local_s,
            sent_bytes={str(to): count for to, count in self._links.sent_bytes().items()},
        )
        self._reply(peer, message_frame(Kind.STATS_REPLY, reply))

    def _on_lost(self, peer: PeerId, reason: str) -> None:
        if self._table is None:
            return
        touched = self._table.drop([session.id for session in self._table.touching(peer)])
        self._end(touched, PeerUnreachable.code, f"A stage of the route was lost: {reason}")

    # The forward pass -----------------------------------------------------------------------

    async def _run_batch(self, worker: WorkerProcess, order: LoadOrder) -> None:
        batch = self._scheduler.take(
            max_rows=self._config.max_batch_rows,
            max_tokens=self._config.max_batch_tokens,
            prefill_tokens=self._prefill_tokens(),
        )
        if not batch:
            self._work_arrived.clear()
            return
        await self._run(batch, worker, order)

    async def _run(self, batch: list[Work], worker: WorkerProcess, order: LoadOrder) -> None:
        taken_s = self._clock.monotonic_s()
        try:
            result = await worker.forward(
                [work.row for work in batch],
                np.concatenate([work.ids for work in batch]),
                [work.hidden for work in batch if work.hidden is not None],
                dtype=batch[0].dtype,
                width=batch[0].width,
            )
        except WorkerFailed:
            raise
        except EngineError as error:  # the worker lives; it may be one row that it cannot compute
            if len(batch) > 1:
                for work in batch:
                    await self._run([work], worker, order)
            elif self._table is not None:
                self._end(self._table.drop([batch[0].row.session]), error.code, str(error))
            return
        done_s = self._clock.monotonic_s()
        self._emit(batch, result, order)
        now_s = self._clock.monotonic_s()
        arrived_s = min(work.arrived_s for work in batch)
        self.pace.record(
            batch,
            compute_s=result.compute_s,
            encode_s=now_s - done_s,
            wait_s=taken_s - arrived_s,
            local_s=now_s - arrived_s,
        )

    def _prefill_tokens(self) -> int:
        """How much prefill may ride along: a chunk as long as a decode step while others decode."""
        table = self._table
        if table is None or not any(
            session.position > session.prompt_tokens for session in table.all()
        ):
            return self._config.max_batch_tokens
        return min(self._config.max_batch_tokens, self.pace.prefill_chunk_tokens())

    def _emit(self, batch: list[Work], result: ForwardResult, order: LoadOrder) -> None:
        if self._table is None:
            return
        if result.hidden is None:
            frames = token_frames(batch, result.sampled, self._table)
        else:
            frames = hidden_frames(batch, result.hidden, self._table, order)
        for peer, frame in frames:
            self._send(peer, frame)

    # Ends -----------------------------------------------------------------------------------

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            if self._table is not None:
                lapsed = self._table.expired(self._clock.monotonic_s())
                self._end(lapsed, "lease_lapsed", "The client was silent for too long.")

    async def _watch(self, worker: WorkerProcess) -> None:
        await worker.wait_dead()
        raise WorkerFailed(worker.epitaph())

    def _end(self, sessions: list[Session], code: str = "", reason: str = "") -> None:
        """Free what dropped sessions held; with a reason, tell their clients."""
        if not sessions:
            return
        for session in sessions:
            self._scheduler.drop(session.owner, session.id)
        if self._worker is not None:
            self._worker.close_sessions([session.id for session in sessions])
        if reason:
            self._tell_failed(sessions, code, reason)
        self._sessions_changed()

    def _sessions_changed(self) -> None:
        if self.num_sessions:
            self._empty.clear()
        else:
            self._empty.set()
        self._on_change()

    def _tell_failed(self, sessions: Iterable[Session], code: str, reason: str) -> None:
        for owner, ids in _by_owner(sessions):
            message = Failed(sessions=ids, code=code, reason=reason[:500])
            self._reply(owner, message_frame(Kind.FAILED, message))

    def _send(self, peer: PeerId, frame: Frame) -> None:
        """Send rows on; a peer that cannot be reached ends the sessions that need it."""
        try:
            self._links.send(peer, frame)
        except PeerUnreachable as error:
            if self._table is not None:
                lost = self._table.drop([row.session for row in frame.rows])
                self._end(lost, error.code, str(error))

    def _reply(self, peer: PeerId, frame: Frame) -> None:
        """Answer a client; one that is gone needs no answer."""
        try:
            self._links.send(peer, frame)
        except PeerUnreachable as error:
            logger.debug("No %s for …%s: %s", frame.kind.name, peer[-6:], error)


def _by_owner(sessions: Iterable[Session]) -> Iterator[tuple[PeerId, tuple[SessionId, ...]]]:
    owners: dict[PeerId, list[SessionId]] = defaultdict(list)
    for session in sessions:
        owners[session.owner].append(session.id)
    for owner, ids in owners.items():
        yield owner, tuple(ids)
