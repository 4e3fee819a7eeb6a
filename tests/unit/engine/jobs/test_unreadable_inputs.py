"""An input that was there when the job began, and cannot be read to its end."""

from __future__ import annotations

import asyncio
import errno
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.core.clock import SystemClock
from engine.jobs.files import Files
from engine.jobs.jobs import Jobs
from engine.jobs.store import JobStore
from engine.localapi.jobs import JobCreateRequest, JobInfo, JobState
from engine.storage.database import Database
from tests.support.job_answerer import BackwardsAnswerer

ROWS = 1500
HEAD_BYTES = 1 << 16
"""So much is read to find out what the input is."""
LIMIT_S = 20.0


class FailingDisk(io.RawIOBase):
    """A file whose first bytes can be read, and no more."""

    def __init__(self, head: bytes) -> None:
        self._head = io.BytesIO(head)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._head.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        count = self._head.readinto(buffer)
        if not count:
            raise OSError(errno.EIO, "Input/output error")
        return count


@asynccontextmanager
async def working(home: Path, answerer: BackwardsAnswerer) -> AsyncIterator[Jobs]:
    clock = SystemClock()
    database = await Database.open(home / "shoal.sqlite3", clock)
    store = JobStore(database, clock)
    jobs = Jobs(store, Files(home / "files", database, store, clock), answerer, clock)
    running = asyncio.create_task(jobs.run())
    try:
        yield jobs
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await database.close()


async def until(jobs: Jobs, job_id: str, wanted: Callable[[JobInfo], bool]) -> JobInfo:
    async with asyncio.timeout(LIMIT_S):
        while not wanted(info := jobs.info(await jobs.store.job(job_id))):
            await asyncio.sleep(0.01)
    return info


async def test_reason_is_told_and_the_next_start_takes_the_input_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "input.jsonl"
    path.write_text(
        "".join(
            json.dumps({"messages": [{"role": "user", "content": f"word{n}"}]}) + "\n"
            for n in range(ROWS)
        )
    )
    head = path.read_bytes()[:HEAD_BYTES]
    whole_open = Path.open

    def open_(file: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if file == path:
            return io.BufferedReader(FailingDisk(head))
        return whole_open(file, mode, *rest, **named)

    answerer = BackwardsAnswerer()
    async with working(tmp_path, answerer) as jobs:
        with monkeypatch.context() as broken:
            broken.setattr(Path, "open", open_)
            job = await jobs.create(JobCreateRequest(input_path=str(path)))
            info = await until(jobs, job.id, lambda info: bool(info.reason))
        assert info.state is JobState.VALIDATING
        assert info.reason == (
            "The input could not be read to its end (Input/output error); make it available "
            "again, then start Shoal anew."
        )
        assert not answerer.asked
    async with working(tmp_path, answerer) as jobs:
        info = await until(jobs, job.id, lambda info: info.state is JobState.COMPLETED)
        assert (info.total_rows, info.done_rows, info.reason) == (ROWS, ROWS, "")
