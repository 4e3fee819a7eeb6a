"""The real engine as a child process, as the tray and the commands start it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from engine.client.client import Client
from engine.config import Config, ModelConfig, StageConfig
from engine.core.clock import SystemClock
from engine.localapi.client import ApiClient
from engine.localapi.launch import EngineProcess, start_engine
from engine.localapi.running import Home, read_token
from engine.models.tokenizer import ChatTokenizer
from engine.node import compute
from engine.node.membership import Membership
from engine.swarm import invites

READY_S = 120.0


@dataclass(slots=True)
class RealEngine:
    """A running engine and a client of its API."""

    process: EngineProcess
    api: ApiClient
    url: str
    token: str
    home: Home

    def status(self) -> dict[str, Any]:
        """`GET /shoal/v1/status`."""
        return self.api.call("GET", "/shoal/v1/status")

    def wait(
        self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float = READY_S
    ) -> dict[str, Any]:
        """Wait for a status, and return it."""
        return eventually(self.status, wanted, timeout_s)

    def wait_state(self, *states: str, timeout_s: float = READY_S) -> dict[str, Any]:
        """Wait for one of these states."""
        return self.wait(lambda status: status["state"] in states, timeout_s)

    def complete(self, prompt: str, **fields: Any) -> dict[str, Any]:
        """`POST /v1/completions`, greedy unless told otherwise."""
        body = {"prompt": prompt, "temperature": 0, "max_tokens": 8, **fields}
        return self.api.call("POST", "/v1/completions", body, timeout_s=120)

    def family(self) -> list[psutil.Process]:
        """The engine and every process under it."""
        engine = psutil.Process(self.process.pid)
        return [engine, *engine.children(recursive=True)]


def sockets(engine: RealEngine) -> set[tuple[str, int]]:
    """Addresses and ports of all sockets of the engine and its children, whether they listen or not."""
    return {
        (connection.laddr.ip, connection.laddr.port)
        for process in engine.family()
        for connection in process.net_connections("inet")
    }


def eventually(read: Callable[[], Any], wanted: Callable[[Any], bool], timeout_s: float) -> Any:
    """Read until the value is as wanted; an assertion error shows the last one."""
    until = time.monotonic() + timeout_s
    while True:
        value = read()
        if wanted(value):
            return value
        assert time.monotonic() < until, f"still {value} after {timeout_s} s"
        time.sleep(0.1)


def gone(processes: Sequence[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """The processes that are still alive after the time-out."""
    _, alive = psutil.wait_procs(processes, timeout=timeout_s)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@contextlib.contextmanager
def real_engine(root: Path, *arguments: str, leased: bool = False) -> Iterator[RealEngine]:
    """Start an engine whose files lie under `root`; end it with the block, and check that all ended.

    The model's files come from `SHOAL_MODELS` or the user's cache, so that nothing is converted
    twice.
    """
    home = Home.under(root)
    process = start_engine(arguments, home, leased=leased)
    try:
        ready = process.wait_ready(READY_S)
        token = ready.token
        assert token == read_token(Path(ready.token_file))
        engine = RealEngine(process, ApiClient(ready.url, token), ready.url, token, home)
        yield engine
    finally:
        family: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
        process.process.terminate()
        process.end()
        assert gone(family, 30) == []


@contextlib.asynccontextmanager
async def swarm_client(root: Path, invite: str) -> AsyncIterator[tuple[Client, ChatTokenizer]]:
    """Join a swarm as a client without a stage, in this process."""
    home = Home.under(root)
    config = Config(model=ModelConfig(), stage=StageConfig(enabled=False))
    membership = Membership(
        home,
        config,
        invites.parse(invite),
        compute.choose(config.model),
        SystemClock(),
        lambda: None,
    )
    async with membership.join() as joined:
        life = asyncio.create_task(membership.run(joined))
        try:
            async with asyncio.timeout(READY_S):
                while membership.serving is None or membership.serving.client.route() is None:
                    if life.done():
                        await life
                    await asyncio.sleep(0.1)
            yield membership.serving.client, membership.serving.tokenizer
        finally:
            life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await life
