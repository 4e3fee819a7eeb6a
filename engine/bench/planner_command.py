"""The arguments of `shoal bench planner`."""

from __future__ import annotations

import argparse
import sys

from engine.bench import quantities
from engine.core.errors import ConfigError


def add_planner(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Plan for random swarms with Shoal's planner, a mixed-integer program, Petals' placement "
        "and an even split: solve times, and how far each is from the best."
    )
    positive = quantities.positive
    parser.add_argument(
        "--machines",
        type=quantities.sizes,
        default=(3, 4, 5, 6, 7, 8, 200),
        metavar="LIST",
        help="sizes of swarms, such as 3,8; above 8 without the mixed-integer program",
    )
    parser.add_argument("--blocks", type=positive, default=80, metavar="L")
    parser.add_argument("--instances", type=positive, default=5, metavar="K", help="of each size")
    parser.add_argument(
        "--time-limit-s", type=positive, default=30, metavar="S", help="of the mixed-integer solver"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_planner)


def _planner(args: argparse.Namespace) -> int:
    from engine.bench import planner

    if max(args.machines) > planner.MAX_MACHINES or args.blocks > planner.MAX_BLOCKS:
        raise ConfigError(
            f"More than {planner.MAX_MACHINES} machines or {planner.MAX_BLOCKS} blocks take hours and "
            "all memory; ask for fewer."
        )
    bench = planner.PlannerBench(args.machines, args.blocks, args.instances, args.time_limit_s)
    report = planner.measure(bench, lambda text: print(f"{text} …", file=sys.stderr))
    print(report.model_dump_json() if args.json else "\n".join(planner.lines(report)))
    return 0
