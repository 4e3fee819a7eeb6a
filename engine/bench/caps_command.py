"""The arguments of `shoal bench caps`."""

from __future__ import annotations

import argparse
import asyncio

from engine.bench import quantities

DIRECTIONS = ("up", "down")
PROMPT_TOKENS, NEW_TOKENS = 128, 48


def add_caps(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = (
        "Start two stages of a model with large hidden states, one of them with a cap on its line, "
        "and a client that gives them more to do than the cap lets through; count the bytes at the "
        "capped host's network interfaces. Needs three hosts, which may be network namespaces."
    )
    parser.add_argument(
        "--caps",
        type=quantities.byte_rates,
        default=(1e6, 250e3),
        metavar="LIST",
        help="bytes per second, such as 1MB,250KB (of 1000 each)",
    )
    parser.add_argument(
        "--directions", type=quantities.names(DIRECTIONS), default=DIRECTIONS, metavar="LIST"
    )
    parser.add_argument(
        "--seconds", type=quantities.positive, default=60, metavar="S", help="of each measurement"
    )
    parser.add_argument(
        "--host-exec",
        metavar="COMMAND",
        help="start each peer through this, such as 'ssh host{i}' or 'ip netns exec host{i}'; {i} "
        "is 1 and 2 for the stages and 3 for the client",
    )
    parser.add_argument(
        "--host-addr", metavar="ADDRESS", help="where peer {i} is reached, such as 10.77.0.{i}"
    )
    parser.add_argument("--cores", type=quantities.cores, metavar="LIST", help="such as 0,1 or 0-3")
    parser.add_argument("--seed", type=int, default=0, help="of the prompts")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_caps)


def _caps(args: argparse.Namespace) -> int:
    from engine.bench import caps, thin_model
    from engine.bench.request import SwarmBench
    from engine.config import ModelConfig

    swarm = SwarmBench(
        model=thin_model.NAME,
        stages=2,
        batch_sizes=(caps.CHATS + caps.PROMPTS,),
        prompt_tokens=PROMPT_TOKENS,
        new_tokens=NEW_TOKENS,
        model_config=ModelConfig(dtype="float32", device="cpu"),
        host_exec=args.host_exec,
        host_addr=args.host_addr,
        cores=args.cores,
        seed=args.seed,
    )
    report = asyncio.run(
        caps.measure(caps.CapsBench(swarm, args.caps, args.directions, args.seconds))
    )
    print(report.model_dump_json() if args.json else "\n".join(caps.lines(report)))
    return 0
