"""`shoal status`: what the engine is doing."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime, timedelta

from engine.cli.attach import running_engine
from engine.cli.commands import Commands
from engine.cli.quantities import shown_bytes
from engine.cli.terminal import printable, shown_progress
from engine.core.ids import PeerId, short
from engine.core.plans import Span
from engine.core.reach import Reach
from engine.localapi.running import Home
from engine.localapi.schema import EngineStatus, PipelineStage, ReadyFile


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "status", parents=[everywhere], help="what the engine is doing", description=__doc__
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show the status. Returns the exit code."""
    engine = running_engine(Home.from_environment())
    answer = engine.client.call("GET", "/shoal/v1/status")
    if args.json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print_status(EngineStatus.model_validate(answer), engine.ready)
    return 0


def print_status(status: EngineStatus, ready: ReadyFile | None = None) -> None:
    """A table for people."""
    for name, value in status_rows(status, ready):
        print(f"{name:<10} {printable(value)}")


def status_rows(status: EngineStatus, ready: ReadyFile | None) -> list[tuple[str, str]]:
    """Name and value of each line."""
    state = status.state + (f": {status.reason}" if status.reason else "")
    if status.until is not None:
        until = datetime.fromtimestamp(status.until, tz=UTC).astimezone()
        day = "" if until - datetime.now(tz=UTC) < timedelta(hours=12) else "%A, "
        state += f" (until {until.strftime(f'{day}%H:%M')})"
    rows = [("State", state), *(("Notice", notice) for notice in status.notices)]
    if status.update is not None and status.update.version:
        rows.append(
            ("New version", f"{status.update.version} ({status.update.step}; `shoal update`)")
        )
    if status.progress is not None:
        rows.append(("Progress", f"{status.progress.what}: {shown_progress(status.progress)}"))
    rows.append(("Model", status.model or "none yet"))
    if status.span is not None:
        total = f" of {status.num_blocks}" if status.num_blocks else ""
        rows.append(("Blocks", f"{Span(*status.span)}{total}"))
        if status.span_reason:
            rows.append(("Why these", status.span_reason))
    if status.plan:
        rows.append(("Pipeline", " → ".join(_stage_text(stage) for stage in status.plan)))
    if status.spares:
        rows.append(("Spare", ", ".join(_stage_text(stage) for stage in status.spares)))
    if status.bottleneck:
        rows.append(("Bottleneck", status.bottleneck))
    swarm = status.swarm or "none (solo)"
    nodes = "node" if status.peers == 1 else "nodes"
    rows += [
        ("Swarm", f"{swarm}, {'private, ' if status.private else ''}{status.peers} other {nodes}"),
        *_reach_rows(status),
        ("Sessions", str(status.sessions)),
        ("Tokens", f"{status.tokens_served} served, {status.tokens_used} used"),
    ]
    if status.worker_pid is not None:
        memory = shown_bytes(status.worker_rss_bytes)
        rows.append(("Worker", f"process {status.worker_pid}, {memory} of memory"))
    rows.append(("API", f"{status.api_url}/v1"))
    if ready is not None:
        rows += [("Token", f"in {ready.token_file}"), ("Process", str(ready.pid))]
    return rows


def _reach_rows(status: EngineStatus) -> list[tuple[str, str]]:
    rows = []
    match status.reachability:
        case Reach.DIRECT:
            also = ", and this node relays for those who cannot" if status.relays_for_others else ""
            rows.append(("Reached", f"directly{also}"))
        case Reach.RELAYED:
            relays = "relay" if status.relays == 1 else "relays"
            rows.append(("Reached", f"through {status.relays} {relays}: no direct connections"))
        case Reach.OUTBOUND_ONLY:
            rows.append(("Reached", "by nobody: no connections come in, and no relay is found"))
        case Reach.LOCAL:
            rows.append(("Reached", "from this computer alone"))
        case None:
            pass  # in no swarm
    for link in status.links:
        way = link.path.value + (f" by {short(PeerId(link.relay))}" if link.relay else "")
        cost = f"{link.rtt_ms:g} ms"
        if link.bandwidth_bytes_per_s is not None:
            cost += f", {link.bandwidth_bytes_per_s * 8 / 1e6:.0f} Mbit/s"
        sent = shown_bytes(link.sent_bytes)
        rows.append(("Link", f"{short(PeerId(link.peer))}: {way}, {cost}, {sent} sent"))
    return rows


def _stage_text(stage: PipelineStage) -> str:
    peer = "this node" if stage.is_self else short(PeerId(stage.peer))
    return f"{peer} ({Span(stage.start, stage.end)})"
