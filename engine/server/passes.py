"""The forward loop: waiting rows go through the worker, and what comes out goes onward."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from engine.config import StageConfig
from engine.core.clock import Clock
from engine.core.errors import EngineError, WorkerFailed
from engine.core.ids import PeerId, SessionId
from engine.protocol.frames import Frame
from engine.protocol.rows import Row
from engine.server.emit import hidden_frames, token_frames
from engine.server.forks import Forks
from engine.server.gathering import Gathering
from engine.server.kept import KeptOutputs
from engine.server.link import SLOTS
from engine.server.pace import Pace, PassCost
from engine.server.prefill_share import PrefillShare
from engine.server.pruning import Pruning
from engine.server.scheduler import BatchKey, Scheduler, Work
from engine.server.sessions import Session, SessionTable
from engine.server.worker_process import ForwardResult, LoadOrder, WorkerProcess

MAX_BACKLOG_BYTES = 1 << 20
"""While more than this waits for a peer, nothing prefills for it."""
HELD_BACK_S = 0.01
"""How often to look whether its line is free again."""


@dataclass(slots=True)
class _Pass:
    """A forward pass that the worker has been given."""

    batch: list[Work]
    begun_s: float
    result: asyncio.Future[ForwardResult]
    is_void: bool = False
    """A pass before it has failed, on whose rows some of these follow: all go again."""


class Passes:
    """Queues the rows of one worker's sessions and computes them, pass by pass.

    Args:
        table: The sessions.
        worker: Computes.
        order: What the worker holds.
        config: Sizes of a pass.
        clock: For the pace.
        pace: Counts what is done; outlives the worker.
        decode_cost: Learns what a pass that only decodes takes.
        send: Takes each frame that goes onward.
        fail: Ends the session of a row that cannot be computed, with a code and a sentence.
        backlog_bytes: What waits to be sent to a peer.
        kept: Has a copy of what goes to later stages.
        pruning: Says what of drafts need not go there.
    """

    def __init__(
        self,
        table: SessionTable,
        worker: WorkerProcess,
        order: LoadOrder,
        config: StageConfig,
        clock: Clock,
        pace: Pace,
        decode_cost: PassCost,
        *,
        send: Callable[[PeerId, Frame], None],
        fail: Callable[[Row, str, str], None],
        backlog_bytes: Callable[[PeerId], int],
        kept: KeptOutputs,
        pruning: Pruning,
    ) -> None:
        self._table = table
        self._worker = worker
        self._order = order
        self._config = config
        self._clock = clock
        self._pace = pace
        self._decode_cost = decode_cost
        self._send = send
        self._fail = fail
        self._backlog_bytes = backlog_bytes
        self._kept = kept
        self._pruning = pruning
        self._scheduler = Scheduler()
        self._forks = Forks()
        self._gathering = Gathering()
        self._share = PrefillShare(config.max_batch_tokens)
        self._under_way: deque[_Pass] = deque()
        self._again: deque[Work] = deque()
        self._holds_back = False
        self._rests_until_s = 0.0
        self._wake = asyncio.Event()

    def add(self, work: Work) -> None:
        """Queue a row."""
        if not (
            work.width or work.is_prefill or work.row.goes_on
        ):  # the first stage's own business
            self._gathering.arrived(work.batch, work.row.session, work.arrived_s)
            self._pruning.arrived(work)
        if not self._forks.holds_back(work):
            self._scheduler.add(work)
            self._wake.set()

    def fork(self, session: Session, source: Session, tokens: int) -> None:
        """Let a session take over the first tokens of another as soon as that has computed them."""
        self._forks.add(session.id, source.id, tokens)
        if not self._forks.is_waiting(source.id):
            self._let_go(source.id, self.computed_tokens(source))

    def drop(self, session: Session) -> list[SessionId]:
        """Forget what a session has waiting.

        Returns:
            Sessions that were to take over from it and now cannot.
        """
        self._scheduler.drop(session.owner, session.id)
        self._pruning.forget(session.id)
        self._again = deque(work for work in self._again if work.row.session != session.id)
        return self._forks.drop(session.id)

    def drop_void(self, session: Session) -> None:
        """Forget what a session has waiting that goes on from a draft: it has been refused."""
        self._scheduler.drop_drafts(session.owner, session.id)
        if self._again:
            self._again = deque(
                w for w in self._again if w.row.session != session.id or not w.row.goes_on
            )

    def waiting_tokens(self, session: Session) -> int:
        """Tokens that a session has waiting."""
        waiting = self._scheduler.waiting_tokens(session.owner, session.id)
        waiting += self._forks.waiting_tokens(session.id)
        for again in (self._again, *[each.batch for each in self._under_way if each.is_void]):
            if again:
                waiting += sum(w.row.committed for w in again if w.row.session == session.id)
        return waiting

    def computed_tokens(self, session: Session) -> int:
        """First tokens of a session that a message to the worker will find computed."""
        if self._forks.is_waiting(session.id):
            return 0
        unsettled = sum(len(accepted.ids) for accepted in session.settled)
        return max(0, session.position - self.waiting_tokens(session) - unsettled)

    def _let_go(self, source: SessionId, computed_tokens: int) -> None:
        for fork in self._forks.ready(source, computed_tokens):
            self._worker.copy_prefix(fork.session, source, fork.tokens)
            ours, theirs = self._table.get(fork.session), self._table.get(source)
            if ours is not None and theirs is not None:
                ours.begins_with(theirs, fork.tokens)
                ours.computed = fork.tokens
            for work in fork.rows:
                self._scheduler.add(work)
                self._wake.set()

    async def run(self) -> NoReturn:
        """Compute until cancelled.

        Raises:
            WorkerFailed: The worker has ended.
        """
        try:
            while True:
                if self._holds_back:  # nothing else tells that a line is free again
                    asyncio.get_running_loop().call_later(HELD_BACK_S, self._wake.set)
                await self._wake.wait()
                self._wake.clear()
                while self._under_way and self._under_way[0].result.done():
                    self._finish(self._under_way.popleft())
                # Rows that we have just sent to ourselves belong in the next pass, or a batch that
                # was once split by its prefill would stay in two halves.
                await asyncio.sleep(0)
                self._begin_passes()
        finally:
            self._under_way.clear()  # results look into memory that is unmapped with the worker

    def _begin_passes(self) -> None:
        self._holds_back = False
        rests_s = self._rests_until_s - self._clock.monotonic_s()
        if rests_s > 0:
            asyncio.get_running_loop().call_later(rests_s, self._wake.set)
            return
        # A pass that begins as another ends leaves no time to rest.
        while len(self._under_way) < (SLOTS if self._pace.work_share == 1 else 1):
            if self._again:
                # One by one and each alone, in their order, to find the row that is to blame.
                if self._under_way:
                    return
                self._begin([self._again.popleft()])
                continue
            batch = self._next_batch()
            if not batch:
                self._holds_back = not self._scheduler.is_empty
                return
            self._begin(batch)

    def _next_batch(self) -> list[Work]:
        if self._scheduler.is_empty:
            return []
        now_s = self._clock.monotonic_s()
        prefilling = self._scheduler.prefilling()
        max_rows = self._config.max_batch_rows
        # Behind a running pass only one that would gain nothing from waiting for its end.
        if (
            self._under_way
            and self._decodes_beside(frozenset())
            and not self._scheduler.has_full_pass(max_rows)
        ):
            return []
        return self._scheduler.take(
            max_rows=max_rows,
            max_tokens=self._config.max_batch_tokens,
            # A batch is there when all of it is: its own prompts need not spare it.
            prefill_tokens=self._share.tokens(
                now_s,
                others_decode=self._decodes_beside(prefilling),
                base_s=0.0 if self._scheduler.has_decode else self._decode_cost.base_s,
            ),
            may_prefill=self._may_prefill,
            may_decode=lambda work, rows: (
                work.batch in prefilling or self._may_decode(work, rows, now_s)
            ),
        )

    def _decodes_beside(self, batches: AbstractSet[BatchKey]) -> bool:
        """Whether some session decodes, here or elsewhere, that is of none of these."""
        return any(
            s.position > s.prompt_tokens and (s.owner, s.request) not in batches
            for s in self._table.all()
        )

    def _may_decode(self, work: Work, waiting_rows: int, now_s: float) -> bool:
        """Whether a batch's rows need not wait for others of it."""
        if work.width:
            return True  # only the first stage gathers, and not while rows still set out
        pass_rows = min(work.pass_rows, self._config.max_batch_rows)
        return self._gathering.may_go(work.batch, waiting_rows, pass_rows, now_s)

    def _may_prefill(self, work: Work) -> bool:
        """Whether the line that its hidden states would take is free enough."""
        session = self._table.get(work.row.session)
        return session is None or self._backlog_bytes(session.next_peer) < MAX_BACKLOG_BYTES

    def _begin(self, batch: list[Work]) -> None:
        for work in batch:
            if (session := self._session(work)) is not None:
                for accepted in session.take_settled():
                    if not session.is_last:
                        self._kept.add(session.id, accepted.position, accepted.ids, accepted.hidden)
                session.begin(work.row.position, work.ids[: work.row.committed])
        for key in {work.batch for work in batch if not work.width and not work.is_prefill}:
            self._gathering.took(key)
        result = self._worker.submit(
            [work.row for work in batch],
            np.concatenate([work.ids for work in batch]),
            [part for work in batch for part in work.hidden],
            dtype=batch[0].dtype,
            width=batch[0].width,
            thresholds=self._pruning.thresholds(batch),
        )
        result.add_done_callback(lambda _: self._wake.set())
        self._under_way.append(_Pass(batch, self._clock.monotonic_s(), result))

    def _finish(self, done: _Pass) -> None:
        batch = done.batch
        error = done.result.exception()
        if isinstance(error, EngineError) and not isinstance(error, WorkerFailed):
            # The worker lives; it may be one row that it cannot compute.
            if len(batch) > 1 or done.is_void:
                self._try_again(batch)
            else:
                self._fail(batch[0].row, error.code, str(error))
            return
        if error is None and done.is_void:
            self._try_again(batch)
            return
        result = done.result.result()
        done_s = self._clock.monotonic_s()
        self._rests_until_s = done_s + result.compute_s * (1 / self._pace.work_share - 1)
        for work in batch:
            if not len(self._forks):
                break
            if self._session(work) is not None and not work.row.goes_on:
                self._let_go(work.row.session, work.row.position + work.row.committed)
        self._pruning.judged(batch, result.judged_s)
        self._emit(batch, result)
        self._pace.replica += result.replica
        self._pace.compaction += result.compaction
        now_s = self._clock.monotonic_s()
        arrived_s = min(work.arrived_s for work in batch)
        self._note_prefill(batch, now_s, result.compute_s)
        self._pace.record(
            batch,
            compute_s=result.compute_s,
            cpu_s=result.cpu_s,
            encode_s=now_s - done_s,
            wait_s=done.begun_s - arrived_s,
            local_s=now_s - arrived_s,
        )
        if self._share.is_calm(now_s) and not any(work.is_prefill for work in batch):
            self._decode_cost.learn(_num_tokens(batch), result.compute_s)

    def _try_again(self, batch: list[Work]) -> None:
        self._again.extend(work for work in batch if self._session(work) is not None)
        sessions = {work.row.session for work in batch}
        for later in self._under_way:
            if any(work.row.session in sessions for work in later.batch):
                later.is_void = True

    def _session(self, work: Work) -> Session | None:
        """The session of a row; None when the row is of no account now."""
        session = self._table.get(work.row.session)
        return session if session is not None and session.attempt == work.row.attempt else None

    def _note_prefill(self, batch: list[Work], now_s: float, compute_s: float) -> None:
        decoding = [work for work in batch if not work.is_prefill]
        cost_s = self._decode_cost.of(_num_tokens(decoding)) if decoding else 0.0
        base_s = self._decode_cost.base_s
        if len(decoding) < len(batch):
            tokens = _num_tokens(work for work in batch if work.is_prefill)
            own_s = compute_s - cost_s
            self._share.prefilled(now_s, tokens, took_s=own_s, base_s=0.0 if decoding else base_s)
        # The end of a prompt may look like a decode step, but has waited for its beginning.
        arrived_s = [work.arrived_s for work in decoding if not self._is_in_prompt(work)]
        if arrived_s:
            local_s = now_s - min(arrived_s)
            self._share.decoded(now_s, local_s=local_s, cost_s=cost_s)

    def _is_in_prompt(self, work: Work) -> bool:
        session = self._table.get(work.row.session)
        return session is None or work.row.position < session.prompt_tokens

    def _emit(self, batch: list[Work], result: ForwardResult) -> None:
        if result.hidden is None:
            frames = token_frames(batch, result.sampled, self._table)
        else:
            frames = hidden_frames(
                batch, result.hidden, self._table, self._order, self._kept, result.kept
            )
        for peer, frame in frames:
            self._send(peer, frame)
        for work in batch:
            if (session := self._session(work)) is not None and session.drafts.is_refuted:
                self.drop_void(session)


def _num_tokens(batch: Iterable[Work]) -> int:
    """What a pass computes: a draft's tokens cost as much as any."""
    return sum(work.row.count for work in batch)
