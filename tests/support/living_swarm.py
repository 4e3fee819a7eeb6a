"""Nodes that choose their own blocks, in one process: all is real but the DHT, which is a table."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from engine.client.client import Client
from engine.config import ClientConfig, StageConfig, SwarmConfig
from engine.core.clock import SystemClock
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.models.layout import read_spec
from engine.node.balancer import Balancer, Policy
from engine.node.herald import Herald
from engine.node.stage_runner import Phase, StageRunner
from engine.node.view import View
from engine.planner.rebalance import decide
from engine.protocol.frames import Dtype
from engine.server.handler import StageHandler
from engine.server.worker_process import LoadOrder
from engine.swarm.announcer import Announcer
from engine.swarm.directory import Directory
from engine.swarm.handshake import Membership
from engine.swarm.identity import load_or_create
from engine.swarm.links import Links
from engine.swarm.memory_transport import MemoryNetwork
from tests.support.swarm import eventually

CLOCK = SystemClock()
MEMBERSHIP = Membership("living")
QUICK = SwarmConfig(
    heartbeat_s=0.5,
    dead_after_s=4.0,
    open_timeout_s=5.0,
    snapshot_refresh_s=0.2,
    announce_refresh_s=1.0,
)


class Board:
    """Where all announcements of a swarm stand."""

    def __init__(self) -> None:
        self._records: dict[str, dict[object, tuple[object, float]]] = defaultdict(dict)

    def dht(self, subkey: bytes) -> BoardDht:
        return BoardDht(self._records, subkey)


@dataclass(slots=True)
class BoardDht:
    """One node's access; in place of `engine.swarm.dht.Dht`."""

    _records: dict[str, dict[object, tuple[object, float]]]
    _subkey: bytes

    async def store_many(self, records: Mapping[str, tuple[bytes, float]]) -> bool:
        for key, record in records.items():
            self._records[key][self._subkey] = record
        return True

    async def get_many(self, keys: Sequence[str]) -> dict[str, dict[object, tuple[object, float]]]:
        return {key: dict(self._records[key]) for key in keys}


@dataclass(slots=True)
class BoardPeer:
    """In place of `engine.swarm.peer.SwarmPeer`."""

    peer_id: PeerId
    dht: BoardDht
    relays: bool = False
    refused_records: int = 0
    neighbours: int = 0

    def announce_addresses(self) -> tuple[str, ...]:
        return ()


@dataclass(slots=True)
class LivingNode:
    """One node."""

    peer: PeerId
    links: Links
    handler: StageHandler
    directory: Directory
    view: View
    stage: StageRunner
    balancer: Balancer
    client: Client
    has_room: bool = True
    """Whether there is memory for a standby."""
    files: Path | None = None
    """Where the blocks of a move are loaded from, if not where all are."""

    async def serves(self, span: Span, within_s: float = 90.0) -> None:
        """Wait until it does."""
        await eventually(
            lambda: self.stage.phase is Phase.ONLINE and self.stage.order.span == span, within_s
        )


class LivingSwarm:
    """See `living_swarm`."""

    def __init__(self, directory: Path, keys: Path) -> None:
        self.spec = read_spec(directory, "tiny@0")
        self.network = MemoryNetwork()
        self.nodes: list[LivingNode] = []
        self._identities = sorted(
            (load_or_create(keys / f"{number}.key") for number in range(4)),
            key=lambda identity: identity.peer_id,
        )
        self._board = Board()
        self._directory = directory

    def node(
        self,
        number: int,
        span: Span = Span(0, 1),  # noqa: B008 - frozen
        *,
        max_blocks: int = 4,
        policy: Policy = decide,
    ) -> LivingNode:
        """A node that is not there yet; ids rise with the number."""
        identity = self._identities[number]
        peer = identity.peer_id
        public_key = identity.signing_key.get_public_key().to_bytes()
        dht = self._board.dht(b"[owner:" + public_key + b"]")
        place = BoardPeer(peer, dht)
        links = Links(self.network.transport(peer), QUICK, CLOCK, MEMBERSHIP)
        config = StageConfig(kv_budget_bytes=64 << 20)
        handler = StageHandler(links, CLOCK, config, lambda: None)
        size = self.spec.model_id, self.spec.num_hidden_layers
        announcer = Announcer(place, QUICK, CLOCK, MEMBERSHIP, size[0], links.neighbours.one_way_s)
        directory = Directory(place, QUICK, CLOCK, MEMBERSHIP, *size)
        view = View(directory, links)
        herald = Herald(handler, announcer, place, max_blocks, ModelSize.of(self.spec, 4))
        stage = StageRunner(handler, herald, self._order(span), CLOCK, lambda: None)
        view.stage = stage

        async def prepare(span: Span) -> LoadOrder:
            order = self._order(span)
            return order if node.files is None else replace(order, directory=node.files)

        async def has_room(num_blocks: int) -> bool:
            return node.has_room

        balancer = Balancer(
            peer,
            max_blocks,
            ModelSize.of(self.spec, 4),
            directory,
            prepare,
            has_room,
            Random(number),
            every_s=0.5,
            policy=policy,
        )
        # What is drafted depends on times, and tests compare all that is told of a token.
        config = ClientConfig(reuse_prefixes=False, speculation="off")
        client = Client(links, view, self.spec, config, CLOCK)
        node = LivingNode(peer, links, handler, directory, view, stage, balancer, client)
        self.nodes.append(node)
        return node

    def _order(self, span: Span) -> LoadOrder:
        return LoadOrder(
            self._directory, self.spec, span, Dtype.FLOAT32, "cpu", threads=1, region_bytes=1 << 20
        )

    async def stop(self) -> None:
        for node in self.nodes:
            await node.stage.close()
            await node.directory.stop()
        for node in self.nodes:
            await node.links.stop()
        await self.network.stop()


async def begin(*nodes: LivingNode) -> None:
    """Let nodes serve the blocks that they were given, and see each other."""
    for node in nodes:
        await node.links.start()
        node.directory.start()
        node.stage.start()
    for node in nodes:
        await node.serves(node.stage.order.span)
    for node in nodes:
        await eventually(
            lambda node=node: (
                {n.peer for n in nodes}
                <= {stage.peer for stage in node.directory.snapshot().stages}
            )
        )


@contextlib.asynccontextmanager
async def living_swarm(directory: Path, keys: Path) -> AsyncIterator[LivingSwarm]:
    """A swarm without nodes yet; their keys are kept in `keys`."""
    swarm = LivingSwarm(directory, keys)
    try:
        yield swarm
    finally:
        await swarm.stop()
