"""The forward loop: waiting rows go through the worker, and what comes out goes onward."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from engine.config import StageConfig
from engine.core.clock import Clock
from engine.core.errors import EngineError, WorkerFailed
from engine.core.ids import PeerId, SessionId
from engine.protocol.frames import Frame
from engine.server.emit import hidden_frames, token_frames
from engine.server.pace import Pace
from engine.server.scheduler import Scheduler, Work
from engine.server.sessions import Session, SessionTable
from engine.server.worker_process import ForwardResult, LoadOrder, WorkerProcess


class Passes:
    """Queues the rows of one worker's sessions and computes them, pass by pass.

    Args:
        table: The sessions.
        worker: Computes.
        order: What the worker holds.
        config: Sizes of a pass.
        clock: For the pace.
        pace: Counts what is done; outlives the worker.
        send: Takes each frame that goes onward.
        fail: Ends a session whose row cannot be computed, with a code and a sentence.
    """

    def __init__(
        self,
        table: SessionTable,
        worker: WorkerProcess,
        order: LoadOrder,
        config: StageConfig,
        clock: Clock,
        pace: Pace,
        *,
        send: Callable[[PeerId, Frame], None],
        fail: Callable[[SessionId, str, str], None],
    ) -> None:
        self._table = table
        self._worker = worker
        self._order = order
        self._config = config
        self._clock = clock
        self._pace = pace
        self._send = send
        self._fail = fail
        self._scheduler = Scheduler()
        self._work_arrived = asyncio.Event()

    def add(self, work: Work) -> None:
        """Queue a row."""
        self._scheduler.add(work)
        self._work_arrived.set()

    def drop(self, session: Session) -> None:
        """Forget what a session has waiting."""
        self._scheduler.drop(session.owner, session.id)

    def waiting_tokens(self, session: Session) -> int:
        """Tokens that a session has waiting."""
        return self._scheduler.waiting_tokens(session.owner, session.id)

    async def run(self) -> NoReturn:
        """Compute until cancelled.

        Raises:
            WorkerFailed: The worker has ended.
        """
        while True:
            await self._work_arrived.wait()
            # Rows that we have just sent to ourselves belong in this pass, or a batch that
            # was once split by its prefill would stay in two halves.
            await asyncio.sleep(0)
            await self._run_batch()

    async def _run_batch(self) -> None:
        batch = self._scheduler.take(
            max_rows=self._config.max_batch_rows,
            max_tokens=self._config.max_batch_tokens,
            prefill_tokens=self._prefill_tokens(),
        )
        if not batch:
            self._work_arrived.clear()
            return
        await self._run(batch)

    async def _run(self, batch: list[Work]) -> None:
        taken_s = self._clock.monotonic_s()
        try:
            result = await self._worker.submit(
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
                    await self._run([work])
            else:
                self._fail(batch[0].row.session, error.code, str(error))
            return
        done_s = self._clock.monotonic_s()
        self._emit(batch, result)
        now_s = self._clock.monotonic_s()
        arrived_s = min(work.arrived_s for work in batch)
        self._pace.record(
            batch,
            compute_s=result.compute_s,
            cpu_s=result.cpu_s,
            encode_s=now_s - done_s,
            wait_s=taken_s - arrived_s,
            local_s=now_s - arrived_s,
        )

    def _prefill_tokens(self) -> int:
        """How much prefill may ride along: a chunk as long as a decode step while others decode."""
        if not any(session.position > session.prompt_tokens for session in self._table.all()):
            return self._config.max_batch_tokens
        return min(self._config.max_batch_tokens, self._pace.prefill_chunk_tokens())

    def _emit(self, batch: list[Work], result: ForwardResult) -> None:
        if result.hidden is None:
            frames = token_frames(batch, result.sampled, self._table)
        else:
            frames = hidden_frames(batch, result.hidden, self._table, self._order)
        for peer, frame in frames:
            self._send(peer, frame)
