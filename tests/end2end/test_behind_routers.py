"""Two homes behind real address translation, and public peers between them."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import pytest

from engine.core.reach import LinkPath, Reach
from tests.support import nat

pytestmark = [pytest.mark.slow, pytest.mark.end2end]

START_LIMIT_S = 90.0
PUNCH_LIMIT_S = 60.0
NUM_PUBLIC = 5
"""libp2p punches holes once four others have seen a peer."""


class PeerProcess:
    """A peer on some host, and its newest state."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.state = {}

    async def until(self, wanted, limit_s):
        async with asyncio.timeout(limit_s):
            while not (self.state and wanted(self.state)):
                line = await self._process.stdout.readline()
                assert line, "the peer has ended"
                self.state = json.loads(line)
        return self.state

    def tell(self, state):
        self._process.stdin.write(json.dumps(state).encode() + b"\n")

    async def stop(self):
        self._process.kill()
        await self._process.wait()


async def start(stack, internet, host, tmp_path, bootstrap=(), *arguments):
    options = [item for address in bootstrap for item in ("--bootstrap", address)]
    process = await asyncio.create_subprocess_exec(
        *internet.at(host),
        sys.executable,
        "-m",
        "tests.support.nat_peer",
        "--identity",
        str(tmp_path / f"{host}.key"),
        *options,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    peer = PeerProcess(process)
    stack.push_async_callback(peer.stop)
    return peer


async def test_two_homes_meet_at_a_relay_and_go_on_through_both_routers_without_losing_a_frame(
    tmp_path,
):
    if reason := nat.missing():
        pytest.skip(reason)
    async with AsyncExitStack() as stack:
        internet = stack.enter_context(nat.Internet())
        public = [f"public{number}" for number in range(NUM_PUBLIC)]
        for host in public:
            internet.add_public(host)
        internet.add_home("home1")
        internet.add_home("home2")

        first = await start(stack, internet, public[0], tmp_path)
        await first.until(lambda state: True, START_LIMIT_S)
        bootstrap = first.state["addresses"][:1]
        others = [await start(stack, internet, host, tmp_path, bootstrap) for host in public[1:]]
        for peer in others:
            await peer.until(lambda state: state["reach"] == Reach.DIRECT, START_LIMIT_S)
            bootstrap += peer.state["addresses"][:1]

        called = await start(stack, internet, "home1", tmp_path, bootstrap)
        caller = await start(stack, internet, "home2", tmp_path, bootstrap, "--call")
        for home in (called, caller):
            await home.until(lambda state: state["reach"] == Reach.RELAYED, START_LIMIT_S)
        caller.tell(called.state)
        target = called.state["peer"]
        await caller.until(
            lambda state: state["paths"].get(target) == LinkPath.RELAYED, PUNCH_LIMIT_S
        )
        punched = await caller.until(
            lambda state: state["paths"].get(target) == LinkPath.PUNCHED, PUNCH_LIMIT_S
        )
        assert punched["has_answers"]
        assert punched["in_order"]
        assert not punched["lost"]
