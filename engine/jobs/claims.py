"""Whose a results file is: each belongs to one job until that has ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Final

from engine.jobs.output import OutputUnusable, output_error
from engine.jobs.records import Job
from engine.jobs.store import JobStore
from engine.localapi.jobs import JobState

_NOTHING_WRITTEN: Final = frozenset({JobState.VALIDATING, JobState.REVIEW})
"""In these states a job has no results yet."""


class Claims:
    """All of them; `store` knows the jobs."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    async def owner(self, path: Path) -> Job | None:
        """The job that writes to this file, if one that has not ended does."""
        jobs = await self._store.unfinished()

        def find() -> Job | None:
            for job in jobs:
                theirs = job.spec.output_path
                if theirs is not None and are_same_file(Path(theirs), path):
                    return job
            return None

        return await asyncio.to_thread(find)

    async def take(self, path: Path, input_path: Path, *, overwrite: bool) -> None:
        """Begin an empty results file, so that a place that cannot be written is known at once.

        Raises:
            OutputUnusable: It exists already, is the input, or cannot be written.
            DiskFull: There is no space.
        """
        if await asyncio.to_thread(are_same_file, input_path, path):
            raise OutputUnusable(
                f"{path} is the input itself; choose another file for the results.",
                param="output_path",
            )
        await asyncio.to_thread(_create, path, overwrite=overwrite)

    async def take_back(self, job: Job) -> None:
        """Have the results file of a cancelled job again, which `give_up` may have removed.

        Raises:
            OutputUnusable: It is another's by now, or cannot be written.
            DiskFull: There is no space.
        """
        if job.spec.output_path is None:
            return
        path = Path(job.spec.output_path)
        known = await self.owner(path)
        if known is not None:
            raise OutputUnusable(
                f"{path} belongs to the job {known.id} by now; cancel that one first.",
                param="output_path",
            )
        has_results = job.cancelled_from not in _NOTHING_WRITTEN
        await asyncio.to_thread(_find_or_create, path, has_results=has_results)

    async def give_up(self, job: Job) -> None:
        """Take a results file away that no result has come into."""
        if job.spec.output_path is not None:
            await asyncio.to_thread(_remove_empty, Path(job.spec.output_path))


def are_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, whatever links and spellings are in between."""
    try:
        return one.samefile(other)
    except OSError:
        pass
    try:
        if one.exists() or other.exists():
            return False
        # Neither is there. Disks differ in whether case counts; two jobs shall not share a file.
        one, other = one.resolve(), other.resolve()
        return one.name.casefold() == other.name.casefold() and one.parent.samefile(other.parent)
    except (OSError, RuntimeError):  # a folder that is not there, links in a circle
        return one == other


def _create(path: Path, *, overwrite: bool) -> None:
    try:
        if overwrite:
            path.unlink(missing_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    except FileExistsError as error:
        raise OutputUnusable(
            f"{path} exists already; remove it, choose another name, or allow overwriting.",
            param="output_path",
        ) from error
    except OSError as error:
        raise output_error(path, error) from error


def _find_or_create(path: Path, *, has_results: bool) -> None:
    try:
        if path.exists() and (has_results or path.stat().st_size == 0):
            return
    except OSError as error:
        raise output_error(path, error) from error
    _create(path, overwrite=False)


def _remove_empty(path: Path) -> None:
    with contextlib.suppress(OSError):  # it is only tidier so
        if path.stat().st_size == 0:
            path.unlink()
