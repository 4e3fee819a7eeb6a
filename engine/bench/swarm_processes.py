"""The engines and the client of a measured swarm, each on its host."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from engine.bench.children import Child, Children, Program
from engine.bench.peer_settings import (
    Role,
    Settings,
    host_and_port,
    host_command,
    listen_address,
    merged,
    stage_words,
)
from engine.bench.specs import ClientSpec
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.swarm import invites
from engine.swarm.identity import load_or_create
from engine.swarm.invites import Invite

READY_LIMIT_S = 300.0
"""Loading and joining, on machines that may be slow and busy."""
_ROUTE_LIMIT_S = 240.0
"""The client's patience ends first, because it knows what is missing."""
_MAX_BOOTSTRAP = 8


@dataclass(frozen=True, slots=True)
class SwarmPlan:
    """What to start, and where."""

    source: str
    model_id: str
    spans: Sequence[Span]
    spares: Sequence[Span]
    """What spare stages hold; each of them is also held by one of the others."""
    hosts: Sequence[int]
    """The number of each stage's host."""
    client_host: int
    """Spares follow it."""
    settings: Callable[[Role], Settings]
    models_dir: Path
    host_exec: str | None
    """Command that leads to host {i}."""
    host_addr: str | None
    """Multiaddr or IP of host {i}."""


@dataclass(slots=True)
class Member:
    """One stage, on its host."""

    number: int
    """Of the host."""
    span: Span
    child: Child
    address: str
    peer: PeerId
    key: bytes
    """Of the identity: made beforehand, so that peers can be told of each other."""
    is_alive: bool = True

    @property
    def bootstrap(self) -> str:
        """Where others find it, as an invite has it."""
        return f"{self.address}/p2p/{self.peer}"


class RunningSwarm:
    """Stages in the order of their blocks, then spares; and the client. Made by `start_swarm`."""

    def __init__(self, children: Children, plan: SwarmPlan, members: Sequence[Member]) -> None:
        self.members = list(members)
        self._children = children
        self._plan = plan
        self._client: Child | None = None
        self._client_peer, self._client_key = new_identity()
        self._invite = invites.found(
            "bench", [members[0].bootstrap], plan.source, plan.model_id, private=True
        )

    @property
    def stages(self) -> list[Member]:
        """Those that began as the pipeline."""
        return self.members[: len(self._plan.spans)]

    async def start(self) -> None:
        """Start all stages and spares, but not the client.

        Raises:
            BenchFailed: One ended, failed or took too long; the text says whose log to read.
        """
        first, *others = self.members
        program = replace(
            self._stage_program(first, self._invite), listens_at=host_and_port(first.address)
        )
        # The others ask the first one for the way in.
        await self._children.first(first.child.start(program, READY_LIMIT_S))
        for member in others:
            await member.child.start(self._stage_program(member, self._invite), READY_LIMIT_S)

    async def start_client(self, settings: Settings) -> None:
        """Start the client, with settings over the usual ones, in place of one that runs already.

        Raises:
            BenchFailed: It found no way through the stages, or ended.
        """
        if self._client is not None:
            await self._children.end(self._client)
        number = self._plan.client_host
        command = host_command(self._plan.host_exec, number)
        self._client = await self._children.launch("The client", command)
        await self._client.start(self._client_program(number, settings), READY_LIMIT_S)
        await self._children.first(self._client.answer("ready", READY_LIMIT_S))

    async def ask(
        self, order: BaseModel, limit_s: float, on_reached: Callable[[Any], None] | None = None
    ) -> Any:
        """Give the client an order and return its result.

        Raises:
            OrderFailed: It could not carry it out.
            BenchFailed: A program ended, or it took too long.
        """
        assert self._client is not None, "the client is started first"
        return await self._children.first(self._client.ask(order.model_dump(), limit_s, on_reached))

    async def kill(self, member: Member) -> None:
        """Kill a stage with -9: agent, libp2p daemon and worker."""
        member.is_alive = False
        await member.child.kill()

    async def restart(self, member: Member) -> None:
        """Start a killed stage again, as a peer that nobody knows yet."""
        member.peer, member.key = await asyncio.to_thread(new_identity)
        alive = [other.bootstrap for other in self.members if other.is_alive][:_MAX_BOOTSTRAP]
        program = self._stage_program(member, replace(self._invite, bootstrap=tuple(alive)))
        await member.child.start(program, READY_LIMIT_S)
        member.is_alive = True

    def settings_of(self, member: Member) -> Settings:
        """What a stage was told."""
        return self._plan.settings(self._role(member.number, member.span))

    def _stage_program(self, member: Member, invite: Invite) -> Program:
        settings = self.settings_of(member)
        return Program(
            stage_words(invite.text(), member.span, member.address, settings),
            {"data/identity.key": member.key},
            self._environment,
        )

    def _client_program(self, number: int, extra: Settings) -> Program:
        own: Settings = {
            "stage": {"enabled": False},
            "swarm": {"listen": [listen_address(self._plan.host_addr, number)]},
        }
        settings = merged(self._plan.settings(self._role(number, None)), extra, own)
        spec = ClientSpec(
            invite=self._invite.text(),
            config=settings,
            stages=len(self._plan.spans),
            ready_limit_s=_ROUTE_LIMIT_S,
        )
        files = {
            "spec.json": spec.model_dump_json().encode(),
            "data/identity.key": self._client_key,
        }
        return Program(
            ["engine.core.child_program", "engine.bench.client", "{home}/spec.json"],
            files,
            self._environment,
            talks=True,
        )

    def _role(self, number: int, span: Span | None) -> Role:
        return Role(
            number=number,
            span=span,
            is_last=span is not None and span.end == self._plan.spans[-1].end,
            client=self._client_peer,
            first_stages=tuple(m.peer for m in self.members if m.span.start == 0),
        )

    @property
    def _environment(self) -> dict[str, str]:
        return {"SHOAL_MODELS": str(self._plan.models_dir)}


async def start_swarm(children: Children, plan: SwarmPlan) -> RunningSwarm:
    """Start the stages; the client is started by the swarm's `start_client`.

    Raises:
        BenchFailed: A peer ended, failed or took too long; the text says whose log to read.
        ConfigError: The address template is no address.
    """
    names = [f"Stage {index}" for index in range(1, len(plan.spans) + 1)]
    names += [f"Spare {index}" for index in range(1, len(plan.spares) + 1)]
    after = plan.client_host + 1
    numbers = [*plan.hosts, *range(after, after + len(plan.spares))]
    members = await asyncio.gather(
        *(
            _launch(children, plan, number, span, name)
            for number, span, name in zip(numbers, [*plan.spans, *plan.spares], names, strict=True)
        )
    )
    swarm = await asyncio.to_thread(RunningSwarm, children, plan, members)
    await swarm.start()
    return swarm


async def _launch(
    children: Children, plan: SwarmPlan, number: int, span: Span, name: str
) -> Member:
    child = await children.launch(name, host_command(plan.host_exec, number))
    # A port that an invite can name: the first one's, and everybody's if they may have to be it.
    port = child.free_port if name == "Stage 1" or plan.spares else 0
    address = listen_address(plan.host_addr, number, port)
    peer, key = await asyncio.to_thread(new_identity)
    return Member(number, span, child, address, peer, key)


def new_identity() -> tuple[PeerId, bytes]:
    """A peer id, and the contents of its key file."""
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        key_file = Path(folder) / "identity.key"
        return load_or_create(key_file).peer_id, key_file.read_bytes()
