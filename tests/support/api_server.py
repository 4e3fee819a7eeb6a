"""The local API over a test's backend, in a thread, for clients that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.config import ApiConfig
from engine.http.backend import Backend
from engine.http.server import serve

TOKEN = "a-token-for-tests-and-nothing-else"


@dataclass(frozen=True)
class Api:
    """Where an API answers, and the token it wants."""

    url: str
    token: str


@contextmanager
def serving_in_thread(backend: Backend) -> Iterator[Api]:
    """Serve `backend` until the block ends."""
    started: list[Api] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()

    async def main() -> None:
        server = await serve(backend, TOKEN, ApiConfig())
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
