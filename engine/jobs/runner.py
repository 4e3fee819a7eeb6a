"""Works through the rows of all jobs as one continuous batch: `run` is the loop to follow.

Many rows are asked at once, each a request of its own; stages merge their steps. What became of them goes
to `settling`. Nothing here decides a row twice: a row is either pending in the store or has its one
outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from engine.core.clock import Clock
from engine.core.errors import CacheFull, EngineError
from engine.jobs.answerer import Answerer
from engine.jobs.files import Files
from engine.jobs.output import ResultFile, Results
from engine.jobs.pace import Hold, Width
from engine.jobs.records import Job, Outcome, Row
from engine.jobs.settling import ACTIVE, Settling
from engine.jobs.store import JobStore
from engine.jobs.work import Work
from engine.localapi.jobs import JobState

logger = logging.getLogger(__name__)

MAX_ROWS_AT_ONCE: Final = 64
"""Stages take this many rows into one pass."""
TICK_S: Final = 1.0
"""How often room is looked for, and watchers learn of rates."""
MAX_HOLD_S: Final = 30.0
_SETTLE_S: Final = 10.0
_READ_ROWS: Final = 16
_CHARS_PER_TOKEN: Final = 3
"""Rather too few: to guess the room that a prompt needs."""
_DEFAULT_ANSWER_TOKENS: Final = 2048


class Runner:
    """The loop over all jobs.

    Args:
        store: Where jobs and outcomes are.
        files: Where the results of OpenAI's batches are entered.
        answerer: Answers requests.
        clock: The time.
        on_change: Told the id of each job of which something changed.
    """

    def __init__(
        self,
        store: JobStore,
        files: Files,
        answerer: Answerer,
        clock: Clock,
        on_change: Callable[[str], None],
    ) -> None:
        self._store = store
        self._files = files
        self._answerer = answerer
        self._clock = clock
        self._on_change = on_change
        self._width = Width(MAX_ROWS_AT_ONCE)
        self._works: dict[int, Work] = {}
        self._wake = asyncio.Event()
        self._settling = Settling(store, self._works, self._changed, self._wake.set)
        self._reserved: dict[tuple[int, int], int] = {}
        """Room that rows will take that have just been asked."""
        self._successes = 0
        self._hold = Hold(TICK_S, MAX_HOLD_S)

    async def run(self) -> None:
        """Work until cancelled."""
        committing = asyncio.create_task(self._settling.run(), name="jobs-commit")
        try:
            while True:
                self._wake.clear()
                try:
                    await self._start_rows()
                except EngineError as error:
                    logger.warning("jobs wait: %s", error)
                    self._wait_after(error)
                active = [work for work in self._works.values() if work.job.state in ACTIVE]
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S if active else None):
                        await self._wake.wait()
                if committing.done():
                    committing.result()  # nothing would be kept any more
                for work in active:
                    self._on_change(work.job.id)
        finally:
            tasks = [committing, *(t for work in self._works.values() for t in work.asked.values())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for work in self._works.values():
                if work.output is not None:
                    await work.output.close()
            self._works.clear()  # rows that were on their way are pending in the store
            self._settling.clear()

    # What the person does -------------------------------------------------------------------

    def work_of(self, job: Job) -> Work | None:
        """What is going on with a job; None when it is not being worked on."""
        return self._works.get(job.key)

    def reason_of(self, work: Work) -> str:
        """Why a job does not get on; empty when it does."""
        if work.job.state not in ACTIVE:
            return work.job.reason
        return self._settling.trouble or work.output_trouble or self._hold.reason

    def take(self, job: Job) -> None:
        """Take a job as it is now: begin to work on it, go on, or pause."""
        work = self._works.get(job.key)
        if work is None:
            work = self._works[job.key] = Work(job)
            if job.spec.output_path is not None:
                results = Results(self._store, job, job.spec.output_format)
                work.output = ResultFile(Path(job.spec.output_path), results)
        work.job = job
        self._changed(job)

    async def drop(self, job: Job) -> None:
        """Stop working on a job: rows that are being answered are given up."""
        work = self._works.get(job.key)
        if work is None:
            return
        work.job = job
        tasks = list(work.asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):  # what has been answered shall be in the results
            async with asyncio.timeout(_SETTLE_S):
                await work.settled.wait()
        self._works.pop(job.key, None)
        if work.output is not None:
            try:
                await work.output.advance(skip_pending=True)
            except EngineError as error:
                logger.warning("the results of a job are incomplete: %s", error)
            await work.output.close()
        self._changed(job)

    # Rows -----------------------------------------------------------------------------------

    async def _start_rows(self) -> None:
        now_s = self._clock.monotonic_s()
        if self._settling.trouble or self._hold.holds(
            now_s, has_way=self._answerer.free_tokens() is not None
        ):
            return
        for work in sorted(self._works.values(), key=lambda w: (-w.job.priority, w.job.key)):
            while work.may_start:
                row = await self._next_row(work)
                if row is None:
                    await self._finish(work)
                    break
                if self._settling.is_behind or not self._has_room(row):
                    return
                await self._begin(work)
                # The person may have paused or deleted the job during any of these waits.
                if self._works.get(work.job.key) is not work or not work.may_start:
                    break
                self._start(work, work.rows.popleft())

    async def _next_row(self, work: Work) -> Row | None:
        """The next row to be asked, which stays in `work.rows`."""
        if not work.rows:
            rows = await self._store.pending(work.job.key, work.last_read, _READ_ROWS)
            work.rows.extend(rows)
            if rows:
                work.last_read = rows[-1].number
        return work.rows[0] if work.rows else None

    def _has_room(self, row: Row) -> bool:
        running = sum(len(work.asked) for work in self._works.values())
        free = self._answerer.free_tokens()
        if free is not None:
            free -= sum(self._reserved.values())
        return self._width.may_start(running, _row_tokens(row), free)

    async def _begin(self, work: Work) -> None:
        if work.job.state is JobState.QUEUED:
            begun = work.job.started_unix_s or self._clock.unix_s()
            work.job = await self._store.move(
                work.job.key,
                {JobState.QUEUED},
                state=JobState.RUNNING,
                reason="",
                started_unix_s=begun,
            )
            self._on_change(work.job.id)

    def _start(self, work: Work, row: Row) -> None:
        self._reserved[row.job, row.number] = _row_tokens(row)
        work.asked[row.number] = asyncio.create_task(self._ask(work, row), name="job-row")

    async def _ask(self, work: Work, row: Row) -> None:
        place = (row.job, row.number)

        def on_token() -> None:
            self._reserved.pop(place, None)  # the stages count it themselves by now
            work.pace.token(self._clock.monotonic_s())

        try:
            assert row.body is not None
            answer = await self._answerer.answer(row.url, json.loads(row.body), on_token)
            outcome = Outcome(
                row.job,
                row.number,
                answer.status,
                answer.body,
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
            )
        except EngineError as error:
            if work.put_back(row, error, self._successes):
                self._wait_after(error)
                return
            outcome = Outcome(row.job, row.number, None, None, error.code, str(error))
        except Exception as error:  # one bad row must not end the others
            logger.error("a row failed", exc_info=error)
            text = "Something went wrong inside the engine; its log says where."
            outcome = Outcome(row.job, row.number, None, None, "internal_error", text)
        finally:
            self._reserved.pop(place, None)
            work.asked.pop(row.number, None)
            self._wake.set()
        self._got_on()
        work.pace.row_ended(self._clock.monotonic_s())
        self._settling.add(work, outcome)

    def _got_on(self) -> None:
        self._successes += 1
        self._hold.got_on()
        self._width.row_ended()

    def _wait_after(self, error: EngineError) -> None:
        if isinstance(error, CacheFull):
            self._width.no_room()
        has_way = self._answerer.free_tokens() is not None
        self._hold.failed(str(error), self._clock.monotonic_s(), has_way=has_way)

    async def _finish(self, work: Work) -> None:
        """End a job whose last row has its outcome."""
        if not work.is_idle:
            return
        await self._settling.write_results(work)
        if not work.may_start:
            return  # the results file is behind, or cannot be written
        job = work.job
        if job.spec.endpoint is not None:
            await self._files.enter_results(job)
        job = await self._store.move(
            job.key,
            set(ACTIVE),
            state=JobState.COMPLETED,
            reason="",
            ended_unix_s=self._clock.unix_s(),
        )
        if job.state is not JobState.COMPLETED:
            return  # paused at the last moment
        self._works.pop(job.key, None)
        if work.output is not None:
            await work.output.close()
        logger.info("a job has ended: %d rows, %d failed", job.total_rows, job.failed_rows)
        self._changed(job)

    def _changed(self, job: Job) -> None:
        self._wake.set()
        self._on_change(job.id)


def _row_tokens(row: Row) -> int:
    body = row.body or ""
    asked = json.loads(body)
    answer = asked.get("max_completion_tokens") or asked.get("max_tokens")
    choices = asked.get("n") or 1
    tokens: int = len(body) // _CHARS_PER_TOKEN + (answer or _DEFAULT_ANSWER_TOKENS)
    return tokens * choices
