"""A swarm in one process: real links, handlers, workers and client, over the memory transport."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from engine.client.client import Client
from engine.client.drafting import Drafting
from engine.config import ClientConfig, StageConfig, StageEmulation, SwarmConfig
from engine.core.clock import SystemClock
from engine.core.errors import WorkerFailed
from engine.core.generation import Speculation, SpeculationWish, TokenEvent
from engine.core.ids import PeerId
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.core.protocol_window import ProtocolWindow
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.models.layout import read_spec
from engine.protocol.frames import Dtype
from engine.server.handler import StageHandler
from engine.server.replica_order import ReplicaOrder
from engine.server.worker_process import LoadOrder, WorkerProcess
from engine.swarm.handshake import Membership
from engine.swarm.links import Links
from engine.swarm.memory_transport import MemoryNetwork

CLOCK = SystemClock()
MEMBERSHIP = Membership("test-swarm")
FAST = SwarmConfig(heartbeat_s=0.5, dead_after_s=4.0, open_timeout_s=5.0)


@dataclass(slots=True)
class LocalStage:
    """One stage of the swarm."""

    links: Links
    handler: StageHandler
    worker: WorkerProcess
    order: LoadOrder
    serving: asyncio.Task[None]
    peer: PeerId
    state: StageState = StageState.ONLINE
    """As announced."""


class LocalSwarm:
    """Stages and one client that see each other at once."""

    def __init__(
        self,
        directory: Path,
        config: StageConfig,
        client: ClientConfig,
        links: SwarmConfig,
        protocols: Mapping[str, ProtocolWindow],
    ) -> None:
        self.network = MemoryNetwork()
        self.spec: ModelSpec = read_spec(directory, "tiny@0")
        self.stages: list[LocalStage] = []
        self.others: tuple[StageInfo, ...] = ()
        """Stages that a test speaks for."""
        self.hidden: set[PeerId] = set()
        """Stages that no client hears of."""
        self.decode_tokens_per_s = self.decode_row_s = 0.0
        """What all stages claim."""
        self.claims: dict[PeerId, float] = {}
        """Decode rates that single stages claim."""
        self.replica: ReplicaOrder | None = None
        """What stages that are added later may hold for DISCO."""
        self._directory = directory
        self._config = config
        self._client_config = client
        self._links_config = links
        self._protocols = protocols
        self._all_links: list[Links] = []

    def snapshot(self) -> SwarmSnapshot:
        """All stages that serve now."""
        infos = tuple(
            StageInfo(
                stage.peer,
                stage.order.span,
                stage.state,
                stage.handler.kv_tokens[0].device,
                self.claims.get(stage.peer, self.decode_tokens_per_s),
                (),
                "test",
                decode_row_s=self.decode_row_s,
                kv_ram_free_tokens=stage.handler.kv_tokens[0].ram,
            )
            for stage in self.stages
            if not stage.serving.done() and stage.peer not in self.hidden
        )
        return SwarmSnapshot("tiny@0", self.spec.num_hidden_layers, (*infos, *self.others))

    async def refresh(self) -> SwarmSnapshot:
        """There is nothing to wait for."""
        return self.snapshot()

    async def add_stage(
        self,
        name: str,
        span: Span,
        decides_as_on: str = "cpu",
        emulate: StageEmulation | None = None,
    ) -> LocalStage:
        """Start a stage with a real worker, whose handler decides as on such a device."""
        links = await self.node(name)
        handler = StageHandler(links, CLOCK, self._config, lambda: None)
        order = LoadOrder(
            self._directory,
            self.spec,
            span,
            Dtype.BFLOAT16 if emulate and not emulate.computes else Dtype.FLOAT32,
            "cpu",
            threads=1,
            region_bytes=1 << 20,
            emulate=emulate,
            replica=self.replica,
        )
        worker = await WorkerProcess.start(
            order, on_progress=lambda done, total: None, on_open_failed=handler.open_failed
        )
        order = replace(order, device=decides_as_on)
        serving = asyncio.create_task(handler.serve(worker, order))
        await asyncio.sleep(0)
        stage = LocalStage(links, handler, worker, order, serving, PeerId(name))
        self.stages.append(stage)
        return stage

    async def add_client(self, name: str = "client") -> Client:
        """Start a client on a node of its own."""
        return self.client(await self.node(name))

    def client(self, links: Links, config: ClientConfig | None = None) -> Client:
        """A client on these links; it decodes plainly unless asked otherwise, so that tests can count."""
        config = config or self._client_config
        if "speculation" not in config.model_fields_set:
            config = config.model_copy(update={"speculation": "off"})
        return Client(links, self, self.spec, config, CLOCK)

    async def node(self, name: str) -> Links:
        """Links of a node that neither serves nor asks: a test speaks for it."""
        membership = replace(MEMBERSHIP, protocols=self._protocols.get(name, MEMBERSHIP.protocols))
        links = Links(self.network.transport(PeerId(name)), self._links_config, CLOCK, membership)
        await links.start()
        self._all_links.append(links)
        return links

    def vanish(self, peer: PeerId) -> None:
        """Let a node be gone for all others, at once, until `restore`."""
        for links in self._all_links:
            if links.local_peer != peer:
                self.network.cut(peer, links.local_peer)

    def restore(self, peer: PeerId) -> None:
        """Let a node be reached again; it has lost nothing but its links."""
        for links in self._all_links:
            self.network.heal(peer, links.local_peer)

    async def stop(self) -> None:
        """End everything."""
        for stage in self.stages:
            stage.serving.cancel()
            with contextlib.suppress(asyncio.CancelledError, WorkerFailed):
                await stage.serving
            await stage.worker.stop()
        for links in self._all_links:
            await links.stop()
        await self.network.stop()


@contextlib.asynccontextmanager
async def local_swarm(
    directory: Path,
    *spans: Span,
    config: StageConfig | None = None,
    client: ClientConfig | None = None,
    links: SwarmConfig = FAST,
    protocols: Mapping[str, ProtocolWindow] = MappingProxyType({}),
) -> AsyncIterator[LocalSwarm]:
    """A swarm with one stage per span, named `s0`, `s1` …; `links` are all nodes' settings.

    `protocols` is what nodes speak that are of another release.
    """
    swarm = LocalSwarm(
        directory, config or StageConfig(), client or ClientConfig(), links, protocols
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            for index, span in enumerate(spans):
                tasks.create_task(swarm.add_stage(f"s{index}", span))
        swarm.stages.sort(key=lambda stage: stage.peer)
        yield swarm
    finally:
        await swarm.stop()


async def collect(
    client: Client,
    prompts: Sequence[Sequence[int]],
    params: Sequence[SamplingParams],
    *,
    drafting: Drafting | None = None,
    speculation: Speculation | SpeculationWish | None = None,
    disturb: Callable[[int], None] = lambda tokens: None,
    into: list[list[TokenEvent]] | None = None,
) -> list[list[TokenEvent]]:
    """Generate to the end: the events of each prompt.

    Args:
        client: Generates.
        prompts: Ids of each.
        params: Of each.
        drafting: How it drafts, whatever the settings.
        speculation: What is asked for.
        disturb: Told after each token of the first answer how many it has.
        into: Where the events go, for who wants to see them before the end.
    """
    events: list[list[TokenEvent]] = [[] for _ in prompts] if into is None else into
    stream = client.generate(prompts, params, speculation=speculation, drafting=drafting)
    async for index, event in stream:
        events[index].append(event)
        if index == 0:
            disturb(len(events[0]))
    return events
