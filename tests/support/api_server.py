"""The local API over a test's backend, in a thread, for clients that block."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.config import ApiConfig
from engine.core.clock import SystemClock
from engine.http.answering import Answering
from engine.http.backend import Backend
from engine.http.batch_routes import BatchRoutes
from engine.http.job_answerer import JobAnswerer
from engine.http.job_routes import JobRoutes
from engine.http.server import Resource, serve
from engine.jobs.files import Files
from engine.jobs.jobs import Jobs
from engine.jobs.store import JobStore
from engine.storage.database import Database

TOKEN = "a-token-for-tests-and-nothing-else"


@dataclass(frozen=True)
class Api:
    """Where an API answers, and the token it wants."""

    url: str
    token: str


@asynccontextmanager
async def job_resources(backend: Backend, folder: Path) -> AsyncIterator[list[Resource]]:
    """Jobs over `backend`, at work, with their files in `folder`."""
    clock = SystemClock()
    database = await Database.open(folder / "shoal.sqlite3", clock)
    store = JobStore(database, clock)
    answerer = JobAnswerer(backend, Answering(backend, clock))
    jobs = Jobs(store, Files(folder / "files", database, store, clock), answerer, clock)
    working = asyncio.create_task(jobs.run())
    try:
        yield [JobRoutes(jobs, ping_every_s=10.0), BatchRoutes(jobs)]
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await database.close()


@contextmanager
def serving_in_thread(backend: Backend, folder: Path | None = None) -> Iterator[Api]:
    """Serve `backend` until the block ends; with a folder, jobs too, which are kept there."""
    started: list[Api] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            resources = []
            if folder is not None:
                resources = await stack.enter_async_context(job_resources(backend, folder))
            server = await serve(backend, TOKEN, ApiConfig(), resources)
            started.append(Api(server.url, TOKEN))
            ready.set()
            await ending.wait()
            await server.close()

    def run() -> None:
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(10)
        yield started[0]
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(10)
        assert not thread.is_alive()
