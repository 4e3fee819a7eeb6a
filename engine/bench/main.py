"""`shoal bench`: which measurement, and how its report is printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from engine.bench import codec, coders, quantities
from engine.bench.caps_command import add_caps
from engine.bench.desktop_command import add_desktop
from engine.bench.kv_command import add_kv
from engine.bench.modes_command import add_acceptance, add_draft_bytes
from engine.bench.papers_command import add_papers
from engine.bench.planner_command import add_planner
from engine.bench.prefix_command import add_prefix
from engine.bench.speculation_command import add_speculation
from engine.bench.swarm_command import add_swarm


def main(words: Sequence[str]) -> int:
    """Run one measurement.

    Args:
        words: What follows `shoal bench`.

    Returns:
        The exit code: 0, or 1 when ids that must be equal are not.

    Raises:
        EngineError: It could not be made.
        SystemExit: With 2 for wrong usage, with 0 after `--help`.
    """
    args = _parser().parse_args(words)
    result: int = args.run(args)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="shoal bench", description="Measure Shoal.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_swarm(commands.add_parser("swarm", help="a swarm of engines, and what it is up against"))
    add_desktop(commands.add_parser("desktop", help="how heavy the app is, how smoothly it runs"))
    add_kv(commands.add_parser("kv", help="what a share of the KV cache in RAM costs"))
    add_prefix(commands.add_parser("prefix", help="what is saved where prompts begin alike"))
    add_caps(commands.add_parser("caps", help="whether a node keeps to the caps on its line"))
    add_speculation(commands.add_parser("speculation", help="what drafts save, and what they cost"))
    add_acceptance(commands.add_parser("acceptance", help="how often drafted tokens are accepted"))
    add_draft_bytes(commands.add_parser("draft-bytes", help="what drafts send, mode by mode"))
    add_planner(commands.add_parser("planner", help="our plans beside those of other planners"))
    add_papers(commands.add_parser("papers", help="the papers' figures by our cost model"))
    _add_codec(commands.add_parser("codec", help="how small and how fast hidden states become"))
    return parser


def _add_codec(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compress recorded hidden states with Shoal's codec and with others, on one thread. "
        "Shoal's reference is learned from the other files of the same type and width, the one "
        "that suits best; a file without such others has its own counted into its size."
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help=".npy of float32, float16 or uint16 (bfloat16)"
    )
    parser.add_argument(
        "--codec",
        type=quantities.names(coders.NAMES),
        default=coders.NAMES,
        metavar="LIST",
        help=f"some of {','.join(coders.NAMES)}",
    )
    parser.add_argument(
        "--payload-kb",
        type=quantities.positive,
        default=0,
        metavar="KB",
        help="compress so much at once, in KiB, as a step on the wire would be; else whole files",
    )
    parser.add_argument("--repeat", type=quantities.positive, default=7, metavar="R")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_codec)


def _codec(args: argparse.Namespace) -> int:
    recordings = [codec.read_recording(path) for path in args.files]
    names = [name for name in args.codec if coders.is_installed(name)]
    for name in args.codec:
        if name not in names:
            print(f"{name} is left out: its package is not installed here.", file=sys.stderr)
    report = codec.measure(
        recordings, names, payload_bytes=1024 * args.payload_kb, repeat=args.repeat
    )
    print(report.model_dump_json() if args.json else "\n".join(codec.lines(report)))
    return 0
