"""The arguments of `shoal bench swarm`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from engine.bench import quantities
from engine.bench.arguments import DTYPES, add_network, swarm_bench
from engine.bench.placements.rivals import PLAN, RIVALS
from engine.core.loading import loading


def add_swarm(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Start headless engines and a client, generate greedily, and measure."
    _add_work(parser)
    add_network(parser)
    _add_machines(parser)
    _add_modes(parser)
    parser.set_defaults(run=_swarm)


def _add_work(parser: argparse.ArgumentParser) -> None:
    positive = quantities.positive
    group = parser.add_argument_group("what is measured")
    group.add_argument(
        "--model",
        default="starter",
        metavar="SOURCE",
        help="as for shoal engine, or synthetic-thin: large hidden states, little to compute",
    )
    stages = group.add_mutually_exclusive_group()
    stages.add_argument("--stages", type=positive, metavar="N", help="alike (default: 1)")
    stages.add_argument(
        "--spans",
        type=quantities.spans,
        default=(),
        metavar="LIST",
        help="the blocks of each stage instead, such as 0-12,12-20,20-30",
    )
    group.add_argument(
        "--batch",
        type=quantities.sizes,
        default=(1,),
        metavar="B",
        help="sequences; 8,32 measures one after the other",
    )
    group.add_argument(
        "--micro-batches",
        type=quantities.counts,
        default=(0,),
        metavar="M",
        help="parts in which a batch travels; 0: Shoal's choice; may be a list too",
    )
    group.add_argument("--prompt-tokens", type=positive, default=32, metavar="P")
    group.add_argument("--new-tokens", type=positive, default=64, metavar="T")
    group.add_argument(
        "--dtype",
        choices=[*DTYPES, *DTYPES.values()],
        help="default: fp32, and fp16 for --emulate",
    )
    group.add_argument("--device", default="auto", help="auto, cpu, cuda …")
    group.add_argument(
        "--codec",
        choices=["auto", "raw", "lossless", "rows8", "blocks8"],
        default="auto",
        help="of hidden states; the last two are lossy",
    )
    group.add_argument(
        "--kv-offload",
        type=quantities.share,
        metavar="A",
        help="share of the KV caches in RAM, from 0 to 1",
    )
    group.add_argument(
        "--emulate",
        type=quantities.emulation,
        metavar="stage=T,bytes=V",
        help="a large model in place of --model: each stage waits so long a pass instead of "
        "computing, and sends so many bytes of recorded hidden states for a whole batch (KB are "
        "1024 bytes; rows=R if both are for another batch than --batch). A pass of fewer rows "
        "takes as long, one of more proportionally longer",
    )
    group.add_argument(
        "--against", choices=["local"], help="local: plain transformers on this machine"
    )
    group.add_argument(
        "--threads",
        type=positive,
        metavar="N",
        help="of each compute process (default: all cores, or its share of them for large batches)",
    )
    group.add_argument("--cores", type=quantities.cores, metavar="LIST", help="such as 0,1 or 0-3")
    group.add_argument("--repeat", type=positive, default=3, metavar="R", help="report the median")
    group.add_argument("--seed", type=int, default=0, help="of prompts, failures and kills")
    group.add_argument("--json", action="store_true", help="one JSON object")


def _add_machines(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the planner makes of it")
    group.add_argument(
        "--nodes",
        type=Path,
        metavar="NODES.json",
        help="the machines, host 1 first, and their lines, as for shoal plan: every run is also "
        "predicted",
    )
    group.add_argument(
        "--placements",
        type=quantities.names((PLAN, *RIVALS)),
        default=(),
        metavar="LIST",
        help="measure ways of placing the blocks on these machines one after the other, all with "
        f"the batch and micro-batches of the first: some of {','.join((PLAN, *RIVALS))}",
    )


def _add_modes(parser: argparse.ArgumentParser) -> None:
    positive = quantities.positive
    group = parser.add_argument_group("instead of the same generation R times")
    group.add_argument(
        "--fail-rate",
        type=quantities.share,
        default=0.0,
        metavar="P",
        help="chance of each transfer to fail and to break its link",
    )
    group.add_argument(
        "--kills",
        type=positive,
        default=0,
        metavar="N",
        help="stages killed with -9 at moments drawn by --seed, each when a spare is ready",
    )
    group.add_argument(
        "--spares", type=positive, metavar="K", help="spare stages (default: what --kills needs)"
    )
    group.add_argument(
        "--generations",
        type=positive,
        default=0,
        metavar="G",
        help="repeat one generation so often; exit code 1 unless all ids are the undisturbed ones",
    )
    group.add_argument(
        "--soak-s",
        type=positive,
        default=0,
        metavar="S",
        help="generate batches of changing size for so long, and report the stages' memory",
    )
    group.add_argument(
        "--long-prompt",
        type=positive,
        default=0,
        metavar="TOKENS",
        help="how much a prompt of this length slows down running chats",
    )
    group.add_argument("--chats", type=positive, default=8, metavar="N", help="of --long-prompt")


def _swarm(args: argparse.Namespace) -> int:
    with loading():
        from engine.bench import swarm, table
    from engine.localapi.running import Home
    from engine.profiler.nodes_file import read_nodes_file

    nodes = None
    if args.nodes is not None:
        nodes = read_nodes_file(args.nodes, Home.from_environment().models_dir)
    args.dtype = args.dtype or ("fp16" if args.emulate else "fp32")
    bench = swarm_bench(
        args,
        stages=len(args.spans) or args.stages or (len(nodes.profiles) if nodes else 1),
        spans=args.spans,
        nodes=nodes,
        placements=args.placements,
        batch_sizes=args.batch,
        micro_batches=args.micro_batches,
        prompt_tokens=args.prompt_tokens,
        settings=_settings(args),
        emulate=args.emulate,
        against=args.against,
        fail_rate=args.fail_rate,
        kills=args.kills,
        spares=args.spares,
        generations=args.generations,
        soak_s=args.soak_s,
        long_prompt=args.long_prompt,
        chats=args.chats,
    )
    report = asyncio.run(swarm.measure(bench))
    if args.json:
        print(report.model_dump_json(exclude=None if args.against else {"ratio"}))
    else:
        print("\n".join(table.lines(report)))
    if report.ids_equal is False:
        print("The runs' token ids differ.", file=sys.stderr)
    return 1 if report.is_broken else 0


def _settings(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """What the arguments change in the engines' settings."""
    settings: dict[str, dict[str, Any]] = {}
    if args.codec in ("rows8", "blocks8"):
        settings["client"] = {"lossy": args.codec}
    elif args.codec != "auto":
        settings["swarm"] = {"codec": args.codec}
    if args.kv_offload is not None:
        settings.setdefault("client", {})["kv_offload"] = args.kv_offload
    return settings
