"""What each peer of a measured swarm is told: settings, addresses, words of its command."""

from __future__ import annotations

import ipaddress
import json
import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.bench.ready_model import ReadyModel
from engine.bench.request import SwarmBench
from engine.config import StageConfig
from engine.core.errors import ConfigError
from engine.core.ids import PeerId
from engine.core.plans import Span

Settings = Mapping[str, Mapping[str, Any]]
"""Branch → field → value."""
_KV_MARGIN = 1.05
_FAULT_SEEDS = 1000


@dataclass(frozen=True, slots=True)
class Role:
    """One peer's place in the swarm."""

    number: int
    """Of its host."""
    span: Span | None
    """None: the client."""
    is_last: bool
    client: PeerId
    first_stages: tuple[PeerId, ...]


def settings_for(
    bench: SwarmBench, model: ReadyModel, threads: int, kv_tokens: int
) -> Callable[[Role], Settings]:
    """What every peer is told, and what only some are.

    Args:
        bench: What was asked for.
        model: Ready.
        threads: Of each compute process.
        kv_tokens: The most tokens that run at once.
    """
    usual = StageConfig()
    longest = max(model.spans, key=len)
    kv_bytes = math.ceil(model.kv_bytes(kv_tokens, longest) * _KV_MARGIN)
    stage: dict[str, Any] = {
        "threads": threads,
        "kv_budget_bytes": max(usual.kv_budget_bytes, kv_bytes),
        "kv_ram_budget_bytes": max(usual.kv_ram_budget_bytes, kv_bytes),
        "max_batch_rows": max(usual.max_batch_rows, *bench.batch_sizes),
    }
    if bench.emulate is not None:
        stage["emulate"] = {"stage_s": bench.emulate.stage_s, "rows": bench.rows_of_emulated_pass}
    if (stretching := bench.stretching) is not None:
        stage["emulate"] = {
            "stage_s": bench.slow_down * stretching.target_s / len(model.spans),
            "rows": stretching.rows,
            "computes": True,
        }
    # Drafts are measured by what asks for them.
    client: dict[str, Any] = {"speculation": "off"}
    if not (bench.disturbed or bench.soak_s):
        # The same prompts come again and again, and each time they shall be computed.
        client["reuse_prefixes"] = False
    if stretching is not None:
        client["draft_place_s"] = bench.slow_down * stretching.draft_s
    common: dict[str, Mapping[str, Any]] = {
        "model": {"dtype": model.machine.dtype_name, "device": model.machine.device},
        "stage": stage,
        "client": client,
    }

    def settings(role: Role) -> Settings:
        swarm: dict[str, Any] = {}
        if (shape := shape_of(bench, role)) is not None:
            swarm["shape"] = shape
        if bench.fail_rate:
            seed = _FAULT_SEEDS * bench.seed + role.number
            swarm["faults"] = {"fail_rate": bench.fail_rate, "seed": seed}
        return merged(common, bench.settings, {"swarm": swarm} if swarm else {})

    return settings


def merged(*trees: Settings) -> dict[str, dict[str, Any]]:
    """The trees laid over one another, later ones on top."""
    branches = dict.fromkeys(branch for tree in trees for branch in tree)
    return {
        branch: {field: value for tree in trees for field, value in tree.get(branch, {}).items()}
        for branch in branches
    }


def shape_of(bench: SwarmBench, role: Role) -> dict[str, Any] | None:
    """How a peer shall slow its lines down (`LinkShape`); None: not at all."""
    if bench.shape is None or (bench.ideal_client_link and role.span is None):
        return None
    shape = {"rate_bytes_per_s": bench.shape.rate_bytes_per_s, "delay_s": bench.shape.delay_s}
    if not bench.ideal_client_link:
        return shape
    ideal_peers = [role.client, *(role.first_stages if role.is_last else ())]
    return {**shape, "ideal_peers": ideal_peers}


def stage_words(invite_text: str, span: Span, address: str, settings: Settings) -> list[str]:
    """The command that runs a stage, after `python -m`."""
    words = ["engine", "engine", "--invite", invite_text, "--blocks", f"{span.start}:{span.end}"]
    words += ["--listen", address]
    for branch, fields in settings.items():
        for field, value in fields.items():
            words += ["--set", f"{branch}.{field}={_toml(value)}"]
    return words


def host_command(template: str | None, number: int) -> list[str]:
    """The words that lead to host `number`; none for this machine."""
    return [] if template is None else shlex.split(template.replace("{i}", str(number)))


def listen_address(template: str | None, number: int, port: int = 0) -> str:
    """The multiaddr that peer `number` listens on; `port` in place of a 0.

    Raises:
        ConfigError: The template makes none.
    """
    text = (template or "127.0.0.1").replace("{i}", str(number))
    if not text.startswith("/"):
        try:
            address = ipaddress.ip_address(text)
        except ValueError as error:
            raise ConfigError(
                f"--host-addr gives {text!r} for peer {number}, which is neither an IP address nor "
                "a multiaddr such as /ip4/10.77.0.1/tcp/0."
            ) from error
        text = f"/ip{address.version}/{address}/tcp/0"
    return f"{text.removesuffix('0')}{port}" if text.endswith("/tcp/0") else text


def host_and_port(address: str) -> tuple[str, int]:
    """Of a multiaddr such as /ip4/10.77.0.1/tcp/4001."""
    _, _, host, _, port, *_ = address.split("/")
    return host, int(port)


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    # A JSON string is a TOML string too.
    return json.dumps(value) if isinstance(value, str) else repr(value)
