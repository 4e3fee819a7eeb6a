"""`shoal bench caps`: what a node with a cap on its line really sends and takes, beside the cap.

Counted where the owner of the line would count: at the host's network interfaces, so that headers,
encryption, acknowledgements and the DHT are in it. The swarm has work for more than the line
carries: chats that decode, prompts that prefill, and probes of the line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from engine.bench.bed import say
from engine.bench.children import Children
from engine.bench.measured import Loaded, Traffic
from engine.bench.peer_settings import Role, Settings, merged, settings_for
from engine.bench.ready_model import ReadyModel, ready_model
from engine.bench.request import SwarmBench
from engine.bench.specs import Load
from engine.bench.swarm_processes import Member, RunningSwarm, SwarmPlan, start_swarm
from engine.core.errors import ConfigError

Direction = Literal["up", "down"]

CHATS = 8
PROMPTS = 3
CHAT_PROMPT_TOKENS = 16
_LINGER_S = 3.0
"""The work goes on for so long after the last count."""
_ORDER_LIMIT_S = 90.0
"""Beside the time that the work itself takes."""


@dataclass(frozen=True, slots=True)
class CapsBench:
    """What was asked for."""

    swarm: SwarmBench
    caps_bytes_per_s: tuple[float, ...]
    directions: tuple[Direction, ...]
    seconds: float


class Row(BaseModel):
    """One direction under one cap."""

    direction: Direction
    cap_bytes_per_s: float
    measured_bytes_per_s: float
    """Over the interfaces of the node's host."""
    ratio: float
    """Measured over cap."""
    other_bytes_per_s: float
    """Over the same interfaces the other way, which has no cap."""
    idle_bytes_per_s: float
    """In the direction of the cap, before there was work."""
    seconds: float
    tokens: int
    """That the swarm gave meanwhile."""
    probes: int
    failed: int
    """Answers that broke off."""


class CapsReport(BaseModel):
    """What `--json` prints."""

    rows: list[Row]
    payload_bytes: int
    """Of a token between the stages, before the codec."""


async def measure(bench: CapsBench) -> CapsReport:
    """Run the whole measurement; nothing that it starts outlives it.

    Raises:
        ConfigError: What was asked for cannot be.
        EngineError: The model cannot be prepared, or a process failed.
    """
    bench.swarm.check()
    if bench.swarm.host_exec is None:
        raise ConfigError(
            "Only on hosts of their own can a node's bytes be told from the others': say with "
            "--host-exec and --host-addr where the two stages and the client run."
        )
    model = await ready_model(bench.swarm, say)
    rows = [
        await _row(bench, model, direction, cap)
        for direction in bench.directions
        for cap in bench.caps_bytes_per_s
    ]
    payload_bytes = model.files.spec.hidden_size * model.element_bytes
    return CapsReport(rows=rows, payload_bytes=payload_bytes)


async def _row(bench: CapsBench, model: ReadyModel, direction: Direction, cap: float) -> Row:
    async with Children(bench.swarm.cores) as children:
        say(f"Starting two stages, {direction} {cap / 1e3:,.0f} KB/s")
        swarm = await start_swarm(children, _plan(bench.swarm, model, direction, cap))
        await swarm.start_client({})
        capped = _capped(swarm.stages, direction)
        idle = await _traffic(children, capped)
        await asyncio.sleep(bench.seconds / 10)
        before = await _traffic(children, capped)
        say(f"Measuring for {bench.seconds:.0f} s")
        order = Load(
            chats=[prompt[:CHAT_PROMPT_TOKENS] for prompt in model.prompts[PROMPTS:]],
            prompts=model.prompts[:PROMPTS],
            new_tokens=bench.swarm.new_tokens,
            probed=str(capped.peer),
            lasts_s=bench.seconds + _LINGER_S,
        )
        working = asyncio.create_task(_work(swarm, order))
        try:
            await asyncio.wait({working}, timeout=bench.seconds)
            after = await _traffic(children, capped)
            loaded = await working
        finally:
            working.cancel()
    ours, other = _rates(before, after, direction)
    return Row(
        direction=direction,
        cap_bytes_per_s=cap,
        measured_bytes_per_s=ours,
        ratio=ours / cap,
        other_bytes_per_s=other,
        idle_bytes_per_s=_rates(idle, before, direction)[0],
        seconds=after.at_s - before.at_s,
        **loaded.model_dump(),
    )


async def _work(swarm: RunningSwarm, order: Load) -> Loaded:
    return Loaded.model_validate(await swarm.ask(order, order.lasts_s + _ORDER_LIMIT_S))


async def _traffic(children: Children, member: Member) -> Traffic:
    return Traffic.model_validate(await children.first(member.child.traffic()))


def _rates(before: Traffic, after: Traffic, direction: Direction) -> tuple[float, float]:
    """Bytes per second in the direction, and in the other one."""
    lasted_s = after.at_s - before.at_s
    up = (after.sent_bytes - before.sent_bytes) / lasted_s
    down = (after.received_bytes - before.received_bytes) / lasted_s
    return (up, down) if direction == "up" else (down, up)


def _capped(stages: Sequence[Member], direction: Direction) -> Member:
    """Who has more to send, or to take, than anybody."""
    return stages[0] if direction == "up" else stages[-1]


def _plan(bench: SwarmBench, model: ReadyModel, direction: Direction, cap: float) -> SwarmPlan:
    tokens = (CHATS + PROMPTS) * (bench.prompt_tokens + bench.new_tokens)
    usual = settings_for(bench, model, 1, tokens)
    limits: Settings = {"limits": {f"{direction}link_bytes_per_s": cap}}

    def settings(role: Role) -> Settings:
        is_capped = role.span is not None and role.is_last is (direction == "down")
        return merged(usual(role), limits) if is_capped else usual(role)

    return SwarmPlan(
        source=model.source,
        model_id=model.files.spec.model_id,
        spans=model.spans,
        spares=[],
        hosts=bench.stage_hosts,
        client_host=bench.client_host,
        settings=settings,
        models_dir=model.models_dir,
        host_exec=bench.host_exec,
        host_addr=bench.host_addr,
    )


def lines(report: CapsReport) -> Iterator[str]:
    """The report for a person."""
    yield "direction       cap    measured   ratio       other        idle    tokens  probes"
    for row in report.rows:
        yield (
            f"{row.direction:9}{row.cap_bytes_per_s / 1e3:>6,.0f} KB/s"
            f"{row.measured_bytes_per_s / 1e3:>7,.1f} KB/s{row.ratio:>8.3f}"
            f"{row.other_bytes_per_s / 1e3:>7,.1f} KB/s{row.idle_bytes_per_s / 1e3:>7,.2f} KB/s"
            f"{row.tokens:>10,}{row.probes:>8}"
            + (f"  ({row.failed} answers broke off)" if row.failed else "")
        )
