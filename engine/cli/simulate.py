"""`shoal simulate`: a swarm of hundreds of nodes in virtual time, under the planner that nodes use."""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path

from engine.cli.commands import Commands
from engine.cli.terminal import ProgressLine, say
from engine.core.errors import ConfigError
from engine.simulator import plot, policies, scenarios
from engine.simulator.world import World

MAX_RELOAD_S = 86_400.0


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "simulate",
        parents=[everywhere],
        help="see how a swarm of hundreds of nodes would do",
        description="Let a day of a swarm pass in a minute or two: nodes come, go, fail and lie, and "
        "every one decides by the same functions as a real node where it belongs. What they serve "
        "is compared with the most that is possible. Equal options give equal results.",
    )
    parser.add_argument("scenario", metavar="SCENARIO", help="which swarm; `list` names them")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", metavar="FILE.svg", type=Path, help="draw it, too")
    parser.add_argument(
        "--reload-s",
        type=_reload_s,
        default=0.0,
        metavar="S",
        help="time in which a node loads other blocks (default: none)",
    )
    parser.add_argument("--seed", type=_seed, default=0, help="of all that is drawn (default: 0)")
    parser.add_argument(
        "--policy",
        choices=policies.NAMES,
        default="shoal",
        help="who places the nodes: our planner, Petals' rules, or nobody after they have joined",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Simulate and print. Returns the exit code."""
    if args.scenario == "list":
        print(_listed(as_json=args.json))
        return 0
    scenario = scenarios.build(args.scenario, args.seed)
    if args.plot is not None:
        _check_writable(args.plot)
    world = World(scenario, policies.named(args.policy, scenario.size), args.seed, args.reload_s)
    begun_s = time.perf_counter()
    with ProgressLine() as line:
        for now_s in world.hours():
            line.show(
                f"Simulating {scenario.name}",
                f"{now_s / 3600:.0f} h of {scenario.duration_s / 3600:.0f} h",
            )
    took_s = time.perf_counter() - begun_s
    record = world.record
    facts: dict[str, object] = {
        "scenario": scenario.name,
        "policy": args.policy,
        "seed": args.seed,
        "reload_s": args.reload_s,
        "mean_bound_share": record.mean_bound_share,
        "served_share": record.served_share,
        "seconds_at_zero": record.seconds_at_zero,
        "longest_zero_s": record.longest_zero_s,
        "moves": record.moves,
        "moves_per_node_day": record.moves_per_node_day,
        "simulated_s": scenario.duration_s,
        "took_s": took_s,
        "at_s": [sample.at_s for sample in record.samples],
        "tokens_per_s": [sample.tokens_per_s for sample in record.samples],
        "bound_tokens_per_s": [sample.bound_tokens_per_s for sample in record.samples],
        "nodes": [sample.nodes for sample in record.samples],
    }
    summary = (
        f"{record.mean_bound_share:.1%} of what is possible is served, "
        f"{record.moves_per_node_day:.1f} moves for each node and day, "
        f"no service for {record.seconds_at_zero:.0f} s"
    )
    if args.plot is not None:
        title = f"{scenario.name}, placed by {args.policy}, reload in {args.reload_s:g} s"
        _write(args.plot, plot.drawn(record, title, summary))
    if args.json:
        print(json.dumps(facts))
        return 0
    counts = [sample.nodes for sample in record.samples]
    hours = scenario.duration_s / 3600
    print(f"{scenario.about}")
    print(f"{min(counts)} to {max(counts)} nodes, {hours:g} hours, placed by {args.policy}.")
    print(f"{summary}.")
    say(f"Simulated in {took_s:.1f} s.")
    return 0


def _listed(*, as_json: bool) -> str:
    abouts = {name: scenarios.build(name, 0).about for name in scenarios.NAMES}
    if as_json:
        return json.dumps({"scenarios": abouts})
    width = max(map(len, abouts))
    return "\n".join(f"{name:{width}}  {about}" for name, about in abouts.items())


def _check_writable(path: Path) -> None:
    """Say now what would fail after a long simulation."""
    if path.suffix.lower() != ".svg":
        raise ConfigError(f"The picture is an SVG, so give a name like picture.svg, not {path}.")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"There is no folder {path.absolute().parent} for the picture; make it.")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The picture {path} cannot be written: {error.strerror}.") from error


def _reload_s(text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text, re.ASCII) or float(text) > MAX_RELOAD_S:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time in seconds between 0 and {MAX_RELOAD_S:.0f}"
        )
    return float(text)


def _seed(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)
