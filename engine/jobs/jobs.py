"""Jobs as the API and the commands see them: begin, look, pause, cancel, retry."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncIterator, Coroutine
from itertools import islice
from pathlib import Path
from typing import Any, Final

from engine.core.clock import Clock
from engine.core.errors import EngineError, RequestError
from engine.jobs import intake
from engine.jobs.answerer import Answerer
from engine.jobs.files import Files
from engine.jobs.output import OutputUnusable, claim, release
from engine.jobs.problems import InputUnusable
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
    JobInput,
    JobPreview,
    JobPreviewRequest,
    JobProblem,
    JobRows,
    JobState,
    PreviewRow,
    ResultFormat,
    RowState,
)

logger = logging.getLogger(__name__)

MAX_ROWS: Final = 1_000_000
MAX_BATCH_ROWS: Final = 50_000
"""OpenAI's limit for `/v1/batches`."""
RESTART_S: Final = 10.0


class Jobs:
    """All jobs of this engine. `run` works on them; the rest may be called meanwhile."""

    def __init__(self, store: JobStore, files: Files, answerer: Answerer, clock: Clock) -> None:
        self.store = store
        self.files = files
        self._answerer = answerer
        self._clock = clock
        self._watchers = Watchers()
        self._runner = Runner(store, files, answerer, clock, self._watchers.tell)
        self._taking_in: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Go on with what an earlier engine has left, and work until cancelled."""
        try:
            while True:
                try:
                    for job in reversed(await self.store.jobs()):
                        self._go_on(job)
                    await self._runner.run()
                except EngineError as error:
                    logger.error("jobs rest: %s", error)
                except Exception as error:  # noqa: BLE001 - the top of the jobs' task
                    # Its text may quote a row, which must not reach the log.
                    frames = "".join(traceback.format_tb(error.__traceback__))
                    logger.error("jobs rest after %s at\n%s", type(error).__name__, frames)
                await asyncio.sleep(RESTART_S)
        finally:
            tasks = list(self._taking_in.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # Beginning ------------------------------------------------------------------------------

    async def preview(self, request: JobPreviewRequest) -> JobPreview:
        """The first rows as they would be asked, or without a template that makes sense, as they are.

        Raises:
            InputUnusable: The input makes no sense.
        """
        spec, path = await self._spec(request)
        try:
            return await self._first_rows(spec, path, request.rows)
        except InputUnusable as error:
            if error.param != "template":
                raise
            problem = JobProblem(column=error.param, message=str(error))
        # The person is still writing it, and wants to see what there is to write about.
        seen = await self._first_rows(spec.model_copy(update={"template": ""}), path, request.rows)
        rows = tuple(PreviewRow(line=row.line, values=row.values) for row in seen.rows)
        return seen.model_copy(update={"rows": rows, "problem": problem})

    async def _first_rows(self, spec: JobSpec, path: Path, most: int) -> JobPreview:
        async with intake.opened(spec, path, self._answerer.check) as reader:
            rows = await asyncio.to_thread(lambda: list(islice(reader.rows(), most)))
        return JobPreview(
            format=reader.format,
            encoding=reader.encoding,
            delimiter=reader.delimiter,
            columns=reader.columns,
            rows=tuple(
                PreviewRow(
                    line=row.line,
                    values=tuple(row.values.get(name, "") for name in reader.columns),
                    request=None if row.request is None else dict(row.request.body),
                    problem=row.problem,
                )
                for row in rows
            ),
        )

    async def create(self, request: JobCreateRequest) -> Job:
        """Begin a job, or go on with the one that writes to the same file from the same input.

        Raises:
            InputUnusable: The input or the template makes no sense.
            OutputUnusable: The results file cannot be written, or is another job's.
        """
        spec, path = await self._spec(request)
        output, overwrite = request.output_path, request.overwrite
        if output is not None:
            if not Path(output).is_absolute():
                raise RequestError("output_path must be absolute.", param="output_path")
            known = await self.store.unfinished_with_output(output)
            if known is not None and known.state is JobState.REVIEW:
                await self.cancel(known.id)  # the input has been corrected, one hopes
                overwrite = True
            elif known is not None:
                return await self._same(known, spec)
        async with intake.opened(spec, path, self._answerer.check):
            pass  # what is wrong with the whole of it is an answer to this request
        if output is not None:
            if await asyncio.to_thread(_are_same, path, Path(output)):
                raise OutputUnusable(
                    f"{output} is the input itself; choose another file for the results.",
                    param="output_path",
                )
            await asyncio.to_thread(claim, Path(output), overwrite=overwrite)
        return await self.begin(spec, request.name or spec.input_name, request.priority)

    async def begin(self, spec: JobSpec, name: str, priority: int = 0) -> Job:
        """Begin a job whose input may still turn out to be unusable."""
        job = await self.store.create(spec, name, priority)
        self._take_in(job)
        return job

    async def _spec(self, request: JobInput) -> tuple[JobSpec, Path]:
        if (request.input_path is None) == (request.input_file_id is None):
            raise RequestError(
                "Give either input_path or input_file_id, and not both.", param="input_path"
            )
        values: dict[str, Any] = request.model_dump(include=set(JobSpec.model_fields))
        if request.input_file_id is not None:
            record = await self.files.one(request.input_file_id)
            name = record.name
        else:
            assert request.input_path is not None
            path = Path(request.input_path)
            if not path.is_absolute():
                raise RequestError("input_path must be absolute.", param="input_path")
            name = path.name
        if isinstance(request, JobCreateRequest):
            values["output_format"] = request.output_format or _format_of(request.output_path)
        spec = JobSpec.model_validate({**values, "input_name": name, "max_rows": MAX_ROWS})
        return spec, self._path(spec)

    async def _same(self, known: Job, spec: JobSpec) -> Job:
        """The job that a repeated request means; it goes on if it was paused."""
        if known.spec.model_dump(exclude={"skip_bad_rows"}) != spec.model_dump(
            exclude={"skip_bad_rows"}
        ):
            raise OutputUnusable(
                f"{spec.output_path} belongs to the job {known.id}, which has another input or "
                "template and has not ended; cancel it, or choose another file.",
                param="output_path",
            )
        return await self.resume(known.id) if known.state is JobState.PAUSED else known

    def _path(self, spec: JobSpec) -> Path:
        if spec.input_file_id is not None:
            return self.files.path(spec.input_file_id)
        assert spec.input_path is not None
        return Path(spec.input_path)

    def _go_on(self, job: Job) -> None:
        if job.state is JobState.VALIDATING:
            if job.key not in self._taking_in:
                self._take_in(job)
        elif job.state in (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED):
            self._runner.take(job)

    def _take_in(self, job: Job) -> None:
        self._background(job.key, self._read(job))
        self._watchers.tell(job.id)

    def _background(self, key: int, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="job-input")
        self._taking_in[key] = task
        task.add_done_callback(lambda _: self._taking_in.pop(key, None))

    async def _read(self, job: Job) -> None:
        try:
            job = await intake.take_in(
                job, self._path(job.spec), self.store, self._answerer.check, self._clock
            )
            self._go_on(job)
            if job.state is JobState.FAILED and job.spec.output_path is not None:
                await asyncio.to_thread(release, Path(job.spec.output_path))
        except (
            EngineError,
            OSError,
        ) as error:  # the disk; the next start of the engine tries again
            reason = str(error)
            if isinstance(error, OSError):
                reason = (
                    f"The input could not be read to its end ({error.strerror}); make it available "
                    "again, then start Shoal anew."
                )
            logger.error("a job's input could not be taken in: %s", reason)
            with contextlib.suppress(EngineError):
                await self.store.change(job.key, reason=reason)
        self._watchers.tell(job.id)

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

    async def cancel(self, job_id: str) -> Job:
        """End it; the answers so far stay."""
        job = await self.store.job(job_id)
        if job.state in ENDED_STATES:
            return job
        reading = self._taking_in.get(job.key)
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        job = await self.store.move(
            job.key,
            set(JobState) - ENDED_STATES,
            state=JobState.CANCELLED,
            reason="",
            ended_unix_s=self._clock.unix_s(),
        )
        if job.state is not JobState.CANCELLED:
            return job  # it has ended by itself meanwhile
        await self._runner.drop(job)
        if job.spec.output_path is not None:
            await asyncio.to_thread(release, Path(job.spec.output_path))
        job = await self.store.job(job_id)
        if job.spec.endpoint is not None:
            await self.files.enter_results(job)
        self._watchers.tell(job.id)
        return job

    async def delete(self, job_id: str) -> None:
        """Forget it with its answers; its results file stays."""
        job = await self.cancel(job_id)
        await self._runner.drop(job, is_deleted=True)
        await self.store.delete(job.key)
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


def _format_of(output_path: str | None) -> ResultFormat:
    return "csv" if output_path is not None and output_path.lower().endswith(".csv") else "jsonl"


def _are_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return one.samefile(other)
    except OSError:
        return False  # one of them is not there
