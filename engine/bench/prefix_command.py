"""The arguments of `shoal bench prefix`."""

from __future__ import annotations

import argparse
import asyncio
import sys

from engine.bench import quantities
from engine.bench.swarm_command import DTYPES, add_network


def add_prefix(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    positive = quantities.positive
    parser.description = (
        "Start headless engines and a client, and generate with and without prefix reuse in turn: "
        "the second turn of a chat, and rows with a common beginning."
    )
    group = parser.add_argument_group("what is measured")
    group.add_argument("--model", default="starter", metavar="SOURCE")
    group.add_argument("--stages", type=positive, default=2, metavar="N")
    group.add_argument(
        "--chat-tokens", type=positive, default=2000, metavar="P", help="of the chat's first turn"
    )
    group.add_argument("--rows", type=positive, default=64, metavar="B")
    group.add_argument(
        "--common-tokens", type=positive, default=500, metavar="P", help="that all rows begin with"
    )
    group.add_argument(
        "--own-tokens",
        type=positive,
        default=20,
        metavar="P",
        help="that follow in each row, and in the chat's second turn",
    )
    group.add_argument("--new-tokens", type=positive, default=16, metavar="T")
    group.add_argument("--dtype", default="fp32", choices=[*DTYPES, *DTYPES.values()])
    group.add_argument("--device", default="auto", help="auto, cpu, cuda …")
    group.add_argument("--threads", type=positive, metavar="N", help="of each compute process")
    group.add_argument("--cores", type=quantities.cores, metavar="LIST", help="such as 0,1 or 0-3")
    group.add_argument("--repeat", type=positive, default=3, metavar="R", help="report medians")
    group.add_argument("--seed", type=int, default=0, help="of the prompts")
    group.add_argument("--json", action="store_true", help="one JSON object")
    add_network(parser)
    parser.set_defaults(run=_prefix)


def _prefix(args: argparse.Namespace) -> int:
    from engine.bench import prefix
    from engine.bench.request import SwarmBench
    from engine.config import ModelConfig

    dtype = DTYPES.get(args.dtype, args.dtype)
    work = prefix.Work(
        chat_tokens=args.chat_tokens,
        rows=args.rows,
        common_tokens=args.common_tokens,
        own_tokens=args.own_tokens,
    )
    bench = SwarmBench(
        model=args.model,
        stages=args.stages,
        batch_sizes=(args.rows,),
        prompt_tokens=work.longest_prompt(args.new_tokens),
        new_tokens=args.new_tokens,
        model_config=ModelConfig.model_validate(
            {"source": args.model, "dtype": dtype, "device": args.device}
        ),
        env=args.env,
        link=args.link,
        ideal_client_link=args.client_link == "ideal",
        line_rate_bytes_per_s=args.host_rate,
        host_exec=args.host_exec,
        host_addr=args.host_addr,
        threads=args.threads,
        cores=args.cores,
        repeat=args.repeat,
        seed=args.seed,
    )
    report = asyncio.run(prefix.measure(bench, work))
    print(report.model_dump_json() if args.json else "\n".join(prefix.lines(report)))
    if not report.ids_equal:
        print("The token ids with and without reuse differ.", file=sys.stderr)
    return 1 if dtype == "float32" and not report.ids_equal else 0
