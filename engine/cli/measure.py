"""`shoal measure`: what this machine can do for a swarm."""

from __future__ import annotations

import argparse
import asyncio
from typing import Final

from engine import config
from engine.cli.commands import Commands
from engine.cli.measured_text import lines
from engine.cli.quantities import positive
from engine.cli.terminal import ProgressLine, printable, say
from engine.config import Config
from engine.core.errors import EngineError
from engine.core.model_spec import ModelSpec
from engine.localapi.client import ApiClient
from engine.localapi.measurements import MeasuredProfile, NetworkMeasurement
from engine.localapi.running import Home, find_running
from engine.localapi.schema import MeasureRequest
from engine.models.known import known_spec, starter_spec
from engine.node import compute
from engine.profiler import profile
from engine.profiler.cache import read, save
from engine.profiler.compute import Show
from engine.profiler.network import FULL, QUICK
from engine.profiler.profile import Subject
from engine.swarm import invites

_ANSWER_MARGIN_S: Final = 2.0
"""Beyond the time that the engine may take to measure lines."""


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "measure",
        parents=[everywhere],
        help="measure what this machine can do",
        description="Measure processor, GPU, memory, disk and, while an engine runs, the lines to "
        "other members; keep what is found for planning. Ctrl-C ends it and leaves nothing behind.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="in seconds, with wider spreads")
    parser.add_argument(
        "--cached",
        action="store_true",
        help="show what was measured before; measure only if hardware, driver or load has changed",
    )
    parser.add_argument("--no-network", action="store_true", help="send nothing to other members")
    parser.add_argument(
        "--on-metered", action="store_true", help="send even where the connection costs by the byte"
    )
    parser.add_argument("--model", metavar="SOURCE", help="measure with this model's block sizes")
    parser.add_argument("--device", help="auto, cpu, cuda, cuda:1 …")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16", "float16"])
    parser.add_argument("--threads", type=positive, metavar="N", help="compute threads")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure and print. Returns the exit code."""
    home = Home.from_environment()
    settings = config.load(home.settings_file, _overrides(args))
    machine = compute.choose(settings.model)
    subject = Subject(
        _spec(args, settings, home), machine.device, machine.dtype_name, settings.stage.threads
    )
    known = asyncio.run(_still_good(home, subject)) if args.cached else None
    is_new = known is None
    if known is None:
        with ProgressLine() as line:

            def show(what: str, share: float) -> None:
                line.show(f"Measuring: {what}", f"({share:.0%})")

            network = _network(args, home, show)
            known = asyncio.run(
                profile.measure(home, subject, show, quick=args.quick, network=network)
            )
    try:
        if is_new:
            save(home, known)
    finally:  # a full disk must not lose a minute's work
        if args.json:
            print(known.model_dump_json())
        else:
            for text in lines(known):
                print(printable(text))
    return 0


async def _still_good(home: Home, subject: Subject) -> MeasuredProfile | None:
    """What was measured before, if it holds; says why not."""
    known = read(home)
    reason = await profile.reason_for(known, subject)
    if reason:
        say(f"Measuring, because {reason}.")
    return None if reason else known


def _network(args: argparse.Namespace, home: Home, show: Show) -> NetworkMeasurement:
    """What the running engine measures with its peers; none runs, or none is wanted: says so."""
    if args.no_network:
        return NetworkMeasurement(note="As asked, no line was measured.")
    ready = find_running(home)
    if ready is None:
        return NetworkMeasurement(note="No engine runs, so no line was measured.")
    show("lines to other members", 0.0)
    effort = QUICK if args.quick else FULL
    wanted = MeasureRequest(quick=args.quick, on_metered=args.on_metered)
    try:
        answer = ApiClient.of(ready).call(
            "POST",
            "/shoal/v1/measurements",
            wanted.model_dump(),
            timeout_s=effort.budget_s + _ANSWER_MARGIN_S,
        )
        return NetworkMeasurement.model_validate(answer)
    except EngineError as error:
        return NetworkMeasurement(note=f"No line was measured: {error}")


def _spec(args: argparse.Namespace, settings: Config, home: Home) -> ModelSpec:
    """The sizes to measure with: the model's, or the built-in one's while they are not known."""
    invite = None if args.model else invites.load(home.swarm_file)
    source = settings.model.source if invite is None else invite.source
    spec = known_spec(source, home.models_dir)
    if spec is not None:
        return spec
    say(
        f"{source} is not on this computer yet, so blocks of the built-in model are measured; plans "
        "scale their times to other models."
    )
    return starter_spec()


def _overrides(args: argparse.Namespace) -> dict[str, dict[str, object]]:
    chosen = {"source": args.model, "device": args.device, "dtype": args.dtype}
    model: dict[str, object] = {name: value for name, value in chosen.items() if value is not None}
    return {"model": model, "stage": {} if args.threads is None else {"threads": args.threads}}
