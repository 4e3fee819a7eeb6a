"""`shoal measure`: what this machine can do for a swarm."""

from __future__ import annotations

import argparse
import asyncio

from engine import config
from engine.cli.commands import Commands
from engine.cli.measured_text import lines
from engine.cli.quantities import positive
from engine.cli.terminal import ProgressLine, printable, say
from engine.config import Config
from engine.core.model_spec import ModelSpec
from engine.localapi.measurements import MeasuredProfile
from engine.localapi.running import Home
from engine.models.known import known_spec, starter_spec
from engine.node import compute
from engine.profiler import profile
from engine.profiler.cache import read
from engine.profiler.compute import Show
from engine.profiler.profile import Subject
from engine.swarm import invites


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "measure",
        parents=[everywhere],
        help="measure what this machine can do",
        description="Measure processor, GPU, memory and disk, and keep what is found for planning. "
        "Ctrl-C ends it and leaves nothing behind.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="in seconds, with wider spreads")
    parser.add_argument(
        "--cached",
        action="store_true",
        help="show what was measured before; measure only if hardware, driver or load has changed",
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
    with ProgressLine() as line:
        found = asyncio.run(
            _measured(
                args,
                home,
                subject,
                lambda what, share: line.show(f"Measuring: {what}", f"({share:.0%})"),
            )
        )
    if args.json:
        print(found.model_dump_json())
    else:
        for text in lines(found):
            print(printable(text))
    return 0


async def _measured(
    args: argparse.Namespace, home: Home, subject: Subject, show: Show
) -> MeasuredProfile:
    if args.cached:
        known = read(home)
        reason = await profile.reason_for(known, subject)
        if known is not None and not reason:
            return known
        say(f"Measuring, because {reason}.")
    return await profile.measure(home, subject, show, quick=args.quick)


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
