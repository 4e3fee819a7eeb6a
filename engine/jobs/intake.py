"""From a job's input to its rows in the store: everything is checked before anything is asked."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from engine.core.clock import Clock
from engine.core.errors import EngineError
from engine.core.sentences import Sentence
from engine.jobs.claims import Claims
from engine.jobs.problems import InputUnusable
from engine.jobs.reading import InputReader, InputRow
from engine.jobs.records import Job, JobSpec
from engine.jobs.requests import Check, Recipe
from engine.jobs.store import JobStore
from engine.jobs.templates import Template
from engine.localapi.jobs import JobProblem, JobState

logger = logging.getLogger(__name__)

_CHUNK_ROWS: Final = 500
_CHUNK_CHARS: Final = 4 << 20


def open_input(spec: JobSpec, path: Path, check: Check) -> InputReader:
    """Open the input of a job; the caller closes it. Blocking.

    Raises:
        InputUnusable: The input or the template makes no sense.
    """
    template = None if spec.template is None else Template.parse(spec.template)
    recipe = Recipe(template, spec.system, spec.parameters, check, spec.endpoint)
    return InputReader.open(path, recipe, name=spec.input_name, format_=spec.format)


@asynccontextmanager
async def opened(spec: JobSpec, path: Path, check: Check) -> AsyncIterator[InputReader]:
    """`open_input` beside the event loop; the input is closed at the end of the block."""
    opening = asyncio.create_task(asyncio.to_thread(open_input, spec, path, check))
    try:
        yield await asyncio.shield(opening)  # who is cancelled here must still close it
    finally:
        opening.add_done_callback(_close)


def _close(opening: asyncio.Task[InputReader]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


async def take_in(job: Job, path: Path, store: JobStore, check: Check, clock: Clock) -> Job:
    """Read all rows into the store, from the beginning, also after an interrupted try.

    Returns:
        The job in the state that follows: queued, in review, or failed.
    """
    await store.forget_rows(job.key)
    try:
        job = await _read(job, path, store, check)
    except InputUnusable as error:
        problem = JobProblem.of(error.args[0], column=error.param)
        return await store.change(
            job.key,
            state=JobState.FAILED,
            reason=str(error),
            num_problems=job.num_problems + 1,
            problems=f"[{problem.model_dump_json()}]",
            ended_unix_s=clock.unix_s(),
        )
    if job.failed_rows == job.total_rows:
        return await store.change(
            job.key,
            state=JobState.FAILED,
            reason="No row of the input can be asked; see what is wrong with them.",
            ended_unix_s=clock.unix_s(),
        )
    if job.num_problems and not job.spec.skip_bad_rows:
        return await store.change(job.key, state=JobState.REVIEW, reason=review_reason(job))
    return await store.change(job.key, state=JobState.QUEUED)


def review_reason(job: Job) -> str:
    """What a job in review waits for."""
    rows = "1 row" if job.num_problems == 1 else f"{job.num_problems} rows"
    return f"{rows} cannot be asked; start without them, or cancel and correct the input."


async def _read(job: Job, path: Path, store: JobStore, check: Check) -> Job:
    number = 0
    async with opened(job.spec, path, check) as reader:
        rows = reader.rows()
        while chunk := await asyncio.to_thread(_take, rows):
            job = await store.add_rows(job.key, number, chunk)
            number += len(chunk)
            if number > job.spec.max_rows:
                raise InputUnusable(
                    Sentence(
                        "The input has more than {n} rows; split it into several.",
                        n=job.spec.max_rows,
                    )
                )
    if not number:
        raise InputUnusable(
            Sentence("The input has no rows; write one prompt or request on each line.")
        )
    return job


def _take(rows: Iterator[InputRow]) -> list[InputRow]:
    """The next rows, as many as may be in memory together."""
    chunk: list[InputRow] = []
    chars = 0
    for row in rows:
        chunk.append(row)
        chars += 0 if row.request is None else len(str(row.request.body))
        if len(chunk) == _CHUNK_ROWS or chars > _CHUNK_CHARS:
            break
    return chunk


class Intakes:
    """The inputs that are being read.

    Args:
        store: Where their rows go.
        claims: On results files.
        check: Finds what is wrong with a request.
        clock: The time.
        on_read: Told each job whose input has been read, in the state that follows.
        on_change: Told the id of each job of which something changed.
    """

    def __init__(
        self,
        store: JobStore,
        claims: Claims,
        check: Check,
        clock: Clock,
        on_read: Callable[[Job], None],
        on_change: Callable[[str], None],
    ) -> None:
        self._store = store
        self._claims = claims
        self._check = check
        self._clock = clock
        self._on_read = on_read
        self._on_change = on_change
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def begin(self, job: Job, path: Path) -> None:
        """Begin to read the input of a job, unless that is under way."""
        if job.key not in self._tasks:
            task = asyncio.create_task(self._read(job, path), name="job-input")
            self._tasks[job.key] = task
            task.add_done_callback(lambda _: self._tasks.pop(job.key, None))
            self._on_change(job.id)

    async def stop(self, job: Job) -> None:
        """Stop reading the input of a job."""
        task = self._tasks.get(job.key)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """Stop reading; the next start begins these inputs again."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, job: Job, path: Path) -> None:
        try:
            job = await take_in(job, path, self._store, self._check, self._clock)
            self._on_read(job)
            if job.state is JobState.FAILED:
                await self._claims.give_up(job)
        except (EngineError, OSError) as error:  # the disk; the next start tries again
            reason = str(error)
            if isinstance(error, OSError):
                reason = (
                    f"The input could not be read to its end ({error.strerror}); make it available "
                    "again, then start Shoal anew."
                )
            logger.error("a job's input could not be taken in: %s", reason)
            with contextlib.suppress(EngineError):
                await self._store.change(job.key, reason=reason)
        self._on_change(job.id)
