"""Jobs as the API and the commands see them: begin, look, pause, cancel, retry, take back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from engine.core.clock import Clock
from engine.core.errors import EngineError, RequestError
from engine.jobs.answerer import Answerer
from engine.jobs.claims import Claims
from engine.jobs.files import Files
from engine.jobs.inputs import Inputs
from engine.jobs.intake import Intakes, review_reason
from engine.jobs.output import OutputUnusable
from engine.jobs.records import Job, JobSpec
from engine.jobs.runner import Runner
from engine.jobs.store import JobStore
from engine.jobs.views import job_info, job_rows
from engine.jobs.watchers import Watchers
from engine.localapi.jobs import (
    ENDED_STATES,
    PAUSED_BY_PERSON,
    JobChangeRequest,
    JobCreateRequest,
    JobInfo,
    JobPreview,
    JobPreviewRequest,
    JobRows,
    JobState,
    RowState,
)

logger = logging.getLogger(__name__)

MAX_BATCH_ROWS: Final = 50_000
"""OpenAI's limit for `/v1/batches`."""
RESTART_S: Final = 10.0
TIDY_EVERY_S: Final = 3600.0


class Jobs:
    """All jobs of this engine. `run` works on them; the rest may be called meanwhile."""

    def __init__(self, store: JobStore, files: Files, answerer: Answerer, clock: Clock) -> None:
        self.store = store
        self.files = files
        self._clock = clock
        self._watchers = Watchers()
        tell = self._watchers.tell
        self._runner = Runner(store, files, answerer, clock, tell)
        self._claims = Claims(store)
        self._inputs = Inputs(files, answerer.check)
        self._intakes = Intakes(store, self._claims, answerer.check, clock, self._go_on, tell)

    async def run(self) -> None:
        """Go on with what an earlier engine has left, and work until cancelled."""
        tidying = asyncio.create_task(self._keep_tidy(), name="jobs-tidy")
        try:
            while True:
                try:
                    for job in reversed(await self.store.jobs()):
                        self._go_on(job)
                    await self._runner.run()
                except EngineError as error:
                    logger.error("jobs rest: %s", error)
                except Exception as error:  # the top of the jobs' task
                    logger.error("jobs rest", exc_info=error)
                await asyncio.sleep(RESTART_S)
        finally:
            tidying.cancel()
            await asyncio.gather(tidying, return_exceptions=True)
            await self._intakes.close()

    async def _keep_tidy(self) -> None:
        """Forget old uploads, and deleted jobs that nobody wants back."""
        while True:
            try:
                await self.store.empty_trash()
                await self.files.tidy()
            except EngineError as error:
                logger.warning("old files and deleted jobs stay for now: %s", error)
            await asyncio.sleep(TIDY_EVERY_S)

    # Beginning ------------------------------------------------------------------------------

    async def preview(self, request: JobPreviewRequest) -> JobPreview:
        """See `Inputs.preview`."""
        return await self._inputs.preview(request)

    async def create(self, request: JobCreateRequest) -> Job:
        """Begin a job, or go on with the one that writes to the same file from the same input.

        Raises:
            InputUnusable: The input or the template makes no sense.
            OutputUnusable: The results file cannot be written, or is another job's.
        """
        spec = await self._inputs.spec(request)
        output, overwrite = request.output_path, request.overwrite
        if output is not None:
            if not Path(output).is_absolute():
                raise RequestError("output_path must be absolute.", param="output_path")
            known = await self._claims.owner(Path(output))
            if known is not None and known.state is JobState.REVIEW:
                await self.cancel(known.id)  # the input has been corrected, one hopes
                overwrite = True
            elif known is not None:
                return await self._same(known, spec)
        await self._inputs.check(spec)  # what is wrong with the whole answers this request
        if output is not None:
            await self._claims.take(Path(output), self._inputs.path(spec), overwrite=overwrite)
        return await self.begin(spec, request.name or spec.input_name, request.priority)

    async def begin(self, spec: JobSpec, name: str, priority: int = 0) -> Job:
        """Begin a job whose input may still turn out to be unusable."""
        job = await self.store.create(spec, name, priority)
        self._go_on(job)
        return job

    async def _same(self, known: Job, spec: JobSpec) -> Job:
        """The job that a repeated request means; it goes on if it was paused."""
        # Its output has been found to be the same file, whatever path leads there.
        others = {"skip_bad_rows", "output_path"}
        if known.spec.model_dump(exclude=others) != spec.model_dump(exclude=others):
            raise OutputUnusable(
                f"{spec.output_path} belongs to the job {known.id}, which has another input or "
                "template and has not ended; cancel it, or choose another file.",
                param="output_path",
            )
        return await self.resume(known.id) if known.state is JobState.PAUSED else known

    def _go_on(self, job: Job) -> None:
        if job.state is JobState.VALIDATING:
            self._intakes.begin(job, self._inputs.path(job.spec))
        elif job.state in (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED):
            self._runner.take(job)

    # Looking --------------------------------------------------------------------------------

    async def infos(self) -> list[JobInfo]:
        """All jobs, newest first."""
        return [self.info(job) for job in await self.store.jobs()]

    def info(self, job: Job) -> JobInfo:
        """What the person sees of a job."""
        work = self._runner.work_of(job)
        reason = job.reason if work is None else self._runner.reason_of(work)
        return job_info(job, work, reason, self._clock.monotonic_s())

    async def rows(
        self, job: Job, after: int, limit: int, state: RowState | None, chars: int
    ) -> JobRows:
        """A page of rows, their texts cut."""
        wanted = RowState.PENDING if state is RowState.RUNNING else state
        rows = await self.store.rows(job.key, after, limit, wanted)
        shown = job_rows(rows, self._runner.work_of(job), chars)
        return JobRows(
            rows=tuple(row for row in shown if state in (None, row.state)),
            next_after=rows[-1].number if len(rows) == limit else None,
        )

    def watch(self) -> AsyncIterator[set[str]]:
        """See `Watchers`."""
        return self._watchers.watch()

    # Changing -------------------------------------------------------------------------------

    async def change(self, job_id: str, request: JobChangeRequest) -> Job:
        """Rename it, or let it come earlier or later."""
        job = await self.store.job(job_id)
        values = request.model_dump(exclude_none=True)
        if values:
            job = await self.store.change(job.key, **values)
            self._refresh(job)
        return job

    async def start(self, job_id: str) -> Job:
        """Begin without the rows that cannot be asked."""
        return await self._move(job_id, {JobState.REVIEW}, state=JobState.QUEUED, reason="")

    async def pause(self, job_id: str) -> Job:
        """Begin no more rows."""
        states = {JobState.QUEUED, JobState.RUNNING}
        return await self._move(job_id, states, state=JobState.PAUSED, reason=PAUSED_BY_PERSON)

    async def resume(self, job_id: str) -> Job:
        """Go on."""
        return await self._move(job_id, {JobState.PAUSED}, state=JobState.QUEUED, reason="")

    async def retry(self, job_id: str) -> Job:
        """Ask the failed rows of a job again that has ended.

        Raises:
            RequestError: There are none that can be asked, or it has not ended.
        """
        job = await self.store.job(job_id)
        if job.state is not JobState.COMPLETED:
            raise RequestError(
                f"The job is {job.state.value}; failed rows can be asked again when it has completed."
            )
        job = await self.store.retry_failed(job.key)
        self._refresh(job)
        return job

    async def unretry(self, job_id: str) -> Job:
        """Take `retry` back: rows that have no other outcome yet keep the errors they had.

        Raises:
            RequestError: No row is being asked again.
        """
        job = await self.store.job(job_id)
        if job.state not in (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED):
            raise RequestError(f"The job is {job.state.value}; no row of it is being asked again.")
        await self._end_work(await self.store.leave_failed(job.key))
        return await self.store.job(job_id)

    async def cancel(self, job_id: str) -> Job:
        """End it; the answers so far stay."""
        job = await self.store.job(job_id)
        if job.state in ENDED_STATES:
            return job
        await self._intakes.stop(job)
        job = await self.store.cancel(job.key)
        if job.state is not JobState.CANCELLED:
            return job  # it has ended by itself meanwhile
        await self._end_work(job)
        await self._claims.give_up(job)
        return await self.store.job(job_id)

    async def uncancel(self, job_id: str) -> Job:
        """Take `cancel` back: it goes on where it was.

        Raises:
            RequestError: It was not cancelled.
            OutputUnusable: Its results file is another's by now, or cannot be written.
        """
        job = await self.store.job(job_id)
        before = job.cancelled_from
        if job.state is not JobState.CANCELLED or before is None:
            raise RequestError(f"The job is {job.state.value}; only a cancelled one can go on.")
        await self._claims.take_back(job)
        await self.files.forget_results(job)
        reasons = {JobState.REVIEW: review_reason(job), JobState.PAUSED: PAUSED_BY_PERSON}
        return await self._move(
            job_id,
            {JobState.CANCELLED},
            state=JobState.QUEUED if before is JobState.RUNNING else before,
            reason=reasons.get(before, ""),
            ended_unix_s=None,
            cancelled_from=None,
        )

    async def delete(self, job_id: str) -> None:
        """End it and put it with its answers into the trash; its results file stays."""
        job = await self.cancel(job_id)
        await self.store.delete(job.key)
        self._watchers.tell(job.id)

    async def restore(self, job_id: str) -> Job:
        """Take it out of the trash.

        Raises:
            JobNotFound: It has been forgotten by now.
        """
        job = await self.store.restore(job_id)
        self._watchers.tell(job.id)
        return job

    async def _end_work(self, job: Job) -> None:
        """See that nobody works any more on a job that has ended."""
        await self._runner.drop(job)
        if job.spec.endpoint is not None:
            await self.files.enter_results(await self.store.job_of_key(job.key))
        self._watchers.tell(job.id)

    async def _move(self, job_id: str, states: set[JobState], **values: Any) -> Job:
        before = await self.store.job(job_id)
        job = await self.store.move(before.key, states, **values)
        if job.state is not values["state"]:
            wanted = " or ".join(sorted(state.value for state in states))
            raise RequestError(f"The job is {job.state.value}; this needs one that is {wanted}.")
        self._refresh(job)
        return job

    def _refresh(self, job: Job) -> None:
        self._go_on(job)
        self._watchers.tell(job.id)
