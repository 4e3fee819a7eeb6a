"""Small swarms for tests: links over memory, peers over hivemind in processes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager

from engine.config import SwarmConfig
from engine.core.clock import SystemClock
from engine.core.ids import PeerId
from engine.protocol.frames import Frame, Kind
from engine.swarm.handshake import Membership
from engine.swarm.links import Links
from engine.swarm.memory_transport import MemoryNetwork

PUBLIC = Membership("swarm-a")
ALICE, BOB, CAROL = PeerId("alice"), PeerId("bob"), PeerId("carol")


def quick_config(**fields: object) -> SwarmConfig:
    """Heartbeats that a test can wait for, and limits that a busy machine keeps."""
    quick = {"heartbeat_s": 0.1, "dead_after_s": 5.0, "open_timeout_s": 5.0}
    return SwarmConfig.model_validate({**quick, **fields})


class Node:
    """Links and what has come in over them."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self.got: list[tuple[PeerId, Frame]] = []
        self.lost: list[tuple[PeerId, str]] = []
        links.on([Kind.STEP, Kind.TOKENS, Kind.KEEP], lambda peer, f: self.got.append((peer, f)))
        links.on_lost(lambda peer, error: self.lost.append((peer, str(error))))


@asynccontextmanager
async def memory_swarm(*peers: PeerId, membership=PUBLIC, **fields):
    """Nodes by peer, started, on one `MemoryNetwork` (`.network`)."""
    swarm = MemorySwarm(quick_config(**fields))
    try:
        for peer in peers:
            await swarm.add(peer, membership)
        yield swarm
    finally:
        await swarm.stop()


class MemorySwarm:
    """See `memory_swarm`."""

    def __init__(self, config: SwarmConfig) -> None:
        self.network = MemoryNetwork()
        self.config = config
        self.nodes: dict[PeerId, Node] = {}
        self._all: list[Node] = []

    async def add(self, peer: PeerId, membership: Membership = PUBLIC, **fields: object) -> Node:
        config = self.config.model_copy(update=fields)
        links = Links(self.network.transport(peer), config, SystemClock(), membership)
        await links.start()
        self.nodes[peer] = Node(links)
        self._all.append(self.nodes[peer])
        return self.nodes[peer]

    def __getitem__(self, peer: PeerId) -> Node:
        return self.nodes[peer]

    async def stop(self) -> None:
        for node in self._all:
            await node.links.stop()
        await self.network.stop()


async def eventually(condition: Callable[[], object], within_s: float = 15.0) -> None:
    """Wait until `condition` holds; the limit is for what never will."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.005)
