"""Jobs at work over a real database, without a swarm."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.core.clock import Clock, SystemClock
from engine.jobs.files import Files
from engine.jobs.jobs import Jobs
from engine.jobs.output import Results
from engine.jobs.store import JobStore
from engine.localapi.jobs import JobCreateRequest, JobInfo, JobState
from engine.storage.database import Database
from tests.support.job_answerer import BackwardsAnswerer

LIMIT_S = 20.0


class Bench:
    """Jobs at work, and what a test wants to know of them."""

    def __init__(self, jobs: Jobs, database: Database, answerer: BackwardsAnswerer) -> None:
        self.jobs = jobs
        self.database = database
        self.answerer = answerer

    async def info(self, job_id: str) -> JobInfo:
        return self.jobs.info(await self.jobs.store.job(job_id))

    async def until(self, job_id: str, wanted: Callable[[JobInfo], bool]) -> JobInfo:
        async with asyncio.timeout(LIMIT_S):
            while not wanted(info := await self.info(job_id)):
                await asyncio.sleep(0.01)
        return info

    async def ended(self, job_id: str, state: JobState = JobState.COMPLETED) -> JobInfo:
        return await self.until(job_id, lambda info: info.state is state)

    async def lines(self, job_id: str) -> list[dict[str, Any]]:
        results = Results(self.jobs.store, await self.jobs.store.job(job_id), "jsonl")
        found: list[bytes] = []
        while (lines := await results.next(skip_pending=True)) is not None:
            found += lines
        return [json.loads(line) for line in found]


@asynccontextmanager
async def working(
    home: Path, answerer: BackwardsAnswerer, clock: Clock | None = None
) -> AsyncIterator[Bench]:
    """Jobs whose files are in `home`, at work until the block ends."""
    clock = clock or SystemClock()
    database = await Database.open(home / "shoal.sqlite3", clock)
    store = JobStore(database, clock)
    jobs = Jobs(store, Files(home / "files", database, store, clock), answerer, clock)
    running = asyncio.create_task(jobs.run())
    try:
        yield Bench(jobs, database, answerer)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await database.close()


def request(folder: Path, prompts: list[str], **fields: Any) -> JobCreateRequest:
    """A job for a text of these lines."""
    path = folder / "input.txt"
    path.write_text("\n".join(prompts))
    return JobCreateRequest(input_path=str(path), **fields)


def words(count: int) -> list[str]:
    """Different prompts."""
    return [f"word{number}" for number in range(count)]


def answers(path: Path) -> list[str | None]:
    """What a results file of JSON lines holds; None: an error without an answer."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        line["response"] and line["response"]["body"]["choices"][0]["message"]["content"]
        for line in lines
    ]
