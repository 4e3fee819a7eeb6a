"""The engines and the client of a measured swarm, each on its host."""

from __future__ import annotations

import asyncio
import ipaddress
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.bench.children import Child, Children, Program
from engine.bench.specs import ClientSpec
from engine.core.errors import ConfigError
from engine.core.plans import Span
from engine.models.layout import ModelFiles
from engine.swarm import invites
from engine.swarm.identity import load_or_create
from engine.swarm.invites import Invite

READY_LIMIT_S = 300.0
"""Loading and joining, on machines that may be slow and busy."""
_ROUTE_LIMIT_S = 240.0
"""The client's patience ends first, because it knows what is missing."""

Settings = Mapping[str, Mapping[str, Any]]
"""Branch → field → value."""


@dataclass(frozen=True, slots=True)
class SwarmPlan:
    """What to start, and where."""

    source: str
    files: ModelFiles
    spans: Sequence[Span]
    settings: Settings
    """The same for every peer."""
    models_dir: Path
    host_exec: str | None
    """Command that leads to host {i}: 1 to N for the stages, N + 1 for the client."""
    host_addr: str | None
    """Multiaddr or IP of host {i}."""


@dataclass(frozen=True, slots=True)
class RunningSwarm:
    """Stages in the order of their blocks, and the client, ready for questions."""

    stages: tuple[Child, ...]
    client: Child


async def start_swarm(children: Children, plan: SwarmPlan) -> RunningSwarm:
    """Start everything; returns when the client has found its way through all the stages.

    Raises:
        BenchFailed: A peer ended, failed or took too long; the text says whose log to read.
        ConfigError: The address template is no address.
    """
    count = len(plan.spans)
    names = [f"Stage {number}" for number in range(1, count + 1)] + ["The client"]
    hosts = await asyncio.gather(
        *(
            children.launch(name, _prefix(plan, number))
            for number, name in enumerate(names, start=1)
        )
    )
    *stages, client = hosts
    addresses = [_listen_address(plan.host_addr, number) for number in range(1, count + 2)]
    addresses[0] = _with_port(addresses[0], stages[0].free_port)
    identity, invite = await asyncio.to_thread(_found, plan, addresses[0])
    # The first one finds its own address in the invite, and listens there.
    first = Program(
        _stage_words(plan, invite, plan.spans[0]),
        {"data/identity.key": identity},
        _environment(plan),
        listens_at=_host_and_port(addresses[0]),
    )
    # The others ask the first one for the way in.
    await children.first(stages[0].start(first, READY_LIMIT_S))
    for stage, span, address in zip(stages[1:], plan.spans[1:], addresses[1:-1], strict=True):
        words = [*_stage_words(plan, invite, span), "--listen", address]
        await stage.start(Program(words, {}, _environment(plan)), READY_LIMIT_S)
    await client.start(_client_program(plan, invite, addresses[-1]), READY_LIMIT_S)
    await children.first(client.answer("ready", READY_LIMIT_S))
    return RunningSwarm(tuple(stages), client)


def _prefix(plan: SwarmPlan, number: int) -> list[str]:
    if plan.host_exec is None:
        return []
    return shlex.split(plan.host_exec.replace("{i}", str(number)))


def _found(plan: SwarmPlan, address: str) -> tuple[bytes, Invite]:
    """The first stage's key, and the invite that names it as the one to ask."""
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        key_file = Path(folder) / "identity.key"
        peer = load_or_create(key_file).peer_id
        bootstrap = [f"{address}/p2p/{peer}"]
        invite = invites.found(
            "bench", bootstrap, plan.source, plan.files.spec.model_id, private=True
        )
        return key_file.read_bytes(), invite


def _stage_words(plan: SwarmPlan, invite: Invite, span: Span) -> list[str]:
    words = ["engine", "engine", "--invite", invite.text(), "--blocks", f"{span.start}:{span.end}"]
    for branch, fields in plan.settings.items():
        for field, value in fields.items():
            words += ["--set", f"{branch}.{field}={_toml(value)}"]
    return words


def _environment(plan: SwarmPlan) -> dict[str, str]:
    return {"SHOAL_MODELS": str(plan.models_dir)}


def _client_program(plan: SwarmPlan, invite: Invite, address: str) -> Program:
    settings = {branch: dict(fields) for branch, fields in plan.settings.items()}
    settings.setdefault("stage", {})["enabled"] = False
    settings.setdefault("swarm", {})["listen"] = [address]
    spec = ClientSpec(
        invite=invite.text(),
        config=settings,
        stages=len(plan.spans),
        ready_limit_s=_ROUTE_LIMIT_S,
    )
    return Program(
        ["engine.bench.client", "{home}/spec.json"],
        {"spec.json": spec.model_dump_json().encode()},
        _environment(plan),
        talks=True,
    )


def _listen_address(template: str | None, number: int) -> str:
    """The multiaddr that peer `number` listens on.

    Raises:
        ConfigError: The template makes none.
    """
    text = (template or "127.0.0.1").replace("{i}", str(number))
    if text.startswith("/"):
        return text
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise ConfigError(
            f"--host-addr gives {text!r} for peer {number}, which is neither an IP address nor a "
            "multiaddr such as /ip4/10.77.0.1/tcp/0."
        ) from error
    return f"/ip{address.version}/{address}/tcp/0"


def _with_port(address: str, free_port: int) -> str:
    """The address with a port that an invite can name."""
    return f"{address.removesuffix('0')}{free_port}" if address.endswith("/tcp/0") else address


def _host_and_port(address: str) -> tuple[str, int]:
    _, _, host, _, port, *_ = address.split("/")
    return host, int(port)


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else repr(value)
