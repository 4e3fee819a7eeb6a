"""The arguments of `shoal bench speculation`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Final

from engine.bench import quantities
from engine.bench.speculation_prompts import PROMPT_KINDS
from engine.bench.swarm_command import DTYPES, add_network
from engine.core.generation import DraftKind, Speculation

MODES: Final = ("shared",)
DRAFTS: Final[tuple[DraftKind, ...]] = ("ngram", "auto")


def add_speculation(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    positive = quantities.positive
    parser.description = (
        "Start headless engines and a client, and decode the same prompts plainly and with drafts in "
        "turn."
    )
    group = parser.add_argument_group("what is measured")
    group.add_argument("--model", default="starter", metavar="SOURCE")
    group.add_argument("--stages", type=positive, default=3, metavar="N")
    group.add_argument(
        "--batch", type=quantities.sizes, default=(1,), metavar="B", help="sequences; may be a list"
    )
    group.add_argument(
        "--prompts",
        type=quantities.names(PROMPT_KINDS),
        default=PROMPT_KINDS,
        metavar="LIST",
        help=f"some of {','.join(PROMPT_KINDS)}: questions, and texts to be copied",
    )
    group.add_argument(
        "--mode", type=quantities.names(MODES), default=MODES, help="shared: noise (the default)"
    )
    group.add_argument(
        "--draft",
        type=quantities.names(DRAFTS),
        default=("ngram",),
        metavar="LIST",
        help="ngram: prompt look-up in every round (the default); auto: where it pays",
    )
    group.add_argument(
        "--draft-tokens",
        type=quantities.sizes,
        default=(4,),
        metavar="N",
        help="the most that a draft proposes for a round; may be a list",
    )
    group.add_argument("--new-tokens", type=positive, default=64, metavar="T")
    group.add_argument("--dtype", default="fp32", choices=[*DTYPES, *DTYPES.values()])
    group.add_argument("--device", default="auto", help="auto, cpu, cuda …")
    group.add_argument("--threads", type=positive, metavar="N", help="of each compute process")
    group.add_argument("--cores", type=quantities.cores, metavar="LIST", help="such as 0,1 or 0-3")
    group.add_argument(
        "--repeat", type=positive, default=6, metavar="R", help="pairs, each of other prompts"
    )
    group.add_argument("--seed", type=int, default=0, help="of the prompts")
    group.add_argument("--json", action="store_true", help="one JSON object")
    add_network(parser)
    parser.set_defaults(run=_speculation)


def _speculation(args: argparse.Namespace) -> int:
    from engine.bench import speculation
    from engine.bench.request import SwarmBench
    from engine.config import ModelConfig

    dtype = DTYPES.get(args.dtype, args.dtype)
    work = speculation.Work(
        kinds=args.prompts,
        ways=tuple(
            Speculation(draft, num_tokens)
            for draft in args.draft
            for num_tokens in (args.draft_tokens if draft != "auto" else args.draft_tokens[:1])
        ),
    )
    bench = SwarmBench(
        model=args.model,
        stages=args.stages,
        batch_sizes=args.batch,
        prompt_tokens=32,  # of prompts that are not used here
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
    report = asyncio.run(speculation.measure(bench, work))
    print(report.model_dump_json() if args.json else "\n".join(speculation.lines(report)))
    if not report.ids_equal:
        print("The token ids with and without drafts differ.", file=sys.stderr)
    return 1 if dtype == "float32" and not report.ids_equal else 0
