"""The arguments of `shoal bench prefix`."""

from __future__ import annotations

import argparse
import asyncio

from engine.bench import quantities
from engine.bench.arguments import add_engines, add_network, print_report, swarm_bench
from engine.core.loading import loading


def add_prefix(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    positive = quantities.positive
    parser.description = (
        "Start headless engines and a client, and generate with and without prefix reuse in turn: "
        "the second turn of a chat, and rows with a common beginning."
    )
    group = parser.add_argument_group("what is measured")
    add_engines(group, stages=2, new_tokens=16, repeat=3, repeated="report medians")
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
    add_network(parser)
    parser.set_defaults(run=_prefix)


def _prefix(args: argparse.Namespace) -> int:
    with loading():
        from engine.bench import prefix

    work = prefix.Work(
        chat_tokens=args.chat_tokens,
        rows=args.rows,
        common_tokens=args.common_tokens,
        own_tokens=args.own_tokens,
    )
    bench = swarm_bench(
        args, batch_sizes=(args.rows,), prompt_tokens=work.longest_prompt(args.new_tokens)
    )
    report = asyncio.run(prefix.measure(bench, work))
    differ = "The token ids with and without reuse differ."
    return print_report(args, report, prefix.lines(report), "" if report.ids_equal else differ)
