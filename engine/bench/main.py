"""`shoal bench`: which measurement, and how its report is printed."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

from engine.bench import codec, coders, quantities
from engine.core.errors import ConfigError

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


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
    _add_swarm(commands.add_parser("swarm", help="a swarm of engines, and what it is up against"))
    _add_codec(commands.add_parser("codec", help="how small and how fast hidden states become"))
    return parser


def _add_swarm(parser: argparse.ArgumentParser) -> None:
    positive = quantities.positive
    parser.description = "Start headless engines and a client, generate greedily, and measure."
    parser.add_argument("--model", default="starter", metavar="SOURCE")
    parser.add_argument("--stages", type=positive, default=1, metavar="N")
    parser.add_argument("--batch", type=positive, default=1, metavar="B", help="sequences")
    parser.add_argument("--prompt-tokens", type=positive, default=32, metavar="P")
    parser.add_argument("--new-tokens", type=positive, default=64, metavar="T")
    parser.add_argument("--dtype", default="float32", choices=[*DTYPES, *DTYPES.values()])
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda …")
    parser.add_argument(
        "--link",
        type=quantities.link,
        metavar="RATE,DELAY",
        help="slow every peer's line down to this, such as 20mbit,10ms",
    )
    parser.add_argument(
        "--host-exec",
        metavar="COMMAND",
        help="start each peer through this, such as 'ssh host{i}'; {i} is 1 to N for the stages "
        "and N + 1 for the client",
    )
    parser.add_argument(
        "--host-addr",
        metavar="ADDRESS",
        help="where peer {i} is reached, such as /ip4/10.77.0.{i}/tcp/0",
    )
    parser.add_argument(
        "--host-rate",
        type=quantities.rate_bytes_per_s,
        default=0.0,
        metavar="RATE",
        help="what the hosts' links carry, for the bound",
    )
    parser.add_argument(
        "--against", choices=["local"], help="local: plain transformers on this machine"
    )
    parser.add_argument("--threads", type=positive, metavar="N", help="of each compute process")
    parser.add_argument("--cores", type=quantities.cores, metavar="LIST", help="such as 0,1 or 0-3")
    parser.add_argument("--repeat", type=positive, default=3, metavar="R", help="report the median")
    parser.add_argument("--seed", type=int, default=0, help="of the prompts")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_swarm)


def _swarm(args: argparse.Namespace) -> int:
    from engine.bench import swarm, table
    from engine.config import ModelConfig

    if args.host_exec is not None and args.host_addr is None:
        raise ConfigError("--host-exec needs --host-addr: it says where each peer is reached.")
    if args.new_tokens < 2:
        raise ConfigError("A decode rate needs at least 2 new tokens; ask for more.")
    bench = swarm.SwarmBench(
        model=args.model,
        stages=args.stages,
        batch_size=args.batch,
        prompt_tokens=args.prompt_tokens,
        new_tokens=args.new_tokens,
        model_config=ModelConfig(
            source=args.model, dtype=DTYPES.get(args.dtype, args.dtype), device=args.device
        ),
        link=args.link,
        line_rate_bytes_per_s=args.host_rate,
        host_exec=args.host_exec,
        host_addr=args.host_addr,
        against=args.against,
        threads=args.threads,
        cores=args.cores,
        repeat=args.repeat,
        seed=args.seed,
    )
    report = asyncio.run(swarm.measure(bench))
    if args.json:
        print(report.model_dump_json(exclude=None if args.against else {"ratio"}))
    else:
        print("\n".join(table.lines(report.runs, report.ratio)))
    if not report.ids_equal:
        print("The runs' token ids differ.", file=sys.stderr)
    return 1 if swarm.must_be_equal(report) and not report.ids_equal else 0


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
