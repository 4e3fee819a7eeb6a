"""What the commands that start a swarm have in common: arguments, and what is made of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from engine.bench import quantities
from engine.bench.environments import ENVIRONMENTS

if TYPE_CHECKING:
    from pydantic import BaseModel

    from engine.bench.request import SwarmBench

DTYPES: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}

Group = argparse._ArgumentGroup  # what `add_argument_group` returns has no public name


def add_engines(
    group: Group,
    *,
    stages: int | None,
    new_tokens: int | None,
    repeat: int | None,
    repeated: str,
) -> None:
    """The arguments that say what runs, and how often; of measurements in float32 by default.

    Args:
        group: Takes them.
        stages: How many there are unless asked otherwise, None: the command decides; so also:
        new_tokens: Of each answer.
        repeat: How often it is measured.
        repeated: What `--repeat` means.
    """
    positive = quantities.positive
    group.add_argument("--model", default="starter", metavar="SOURCE")
    group.add_argument("--stages", type=positive, default=stages, metavar="N")
    group.add_argument("--new-tokens", type=positive, default=new_tokens, metavar="T")
    group.add_argument("--dtype", default="fp32", choices=[*DTYPES, *DTYPES.values()])
    group.add_argument("--device", default="auto", help="auto, cpu, cuda …")
    group.add_argument("--threads", type=positive, metavar="N", help="of each compute process")
    group.add_argument("--cores", type=quantities.cores, metavar="LIST", help="such as 0,1 or 0-3")
    group.add_argument("--repeat", type=positive, default=repeat, metavar="R", help=repeated)
    group.add_argument("--seed", type=int, default=0, help="of the prompts")
    group.add_argument("--json", action="store_true", help="one JSON object")


def add_network(parser: argparse.ArgumentParser) -> None:
    """The arguments that say where the peers run and what their links are like."""
    group = parser.add_argument_group("the network")
    group.add_argument(
        "--env",
        choices=list(ENVIRONMENTS),
        help="a network of the BloomBee paper: without --host-exec every peer's line is slowed "
        "down to it, else the hosts' own links are taken to be so",
    )
    group.add_argument(
        "--link",
        type=quantities.link,
        metavar="RATE,DELAY",
        help="slow every peer's line down to this, such as 20mbit,10ms",
    )
    group.add_argument(
        "--client-link",
        choices=["shaped", "ideal"],
        default="shaped",
        help="ideal: no delay and no limit between client and stages, nor from the last stage "
        "back to the first, as in that paper's totals",
    )
    group.add_argument(
        "--host-exec",
        metavar="COMMAND",
        help="start each peer through this, such as 'ssh host{i}'; {i} is 1 to N for the stages, "
        "N + 1 for the client, and more for spares",
    )
    group.add_argument(
        "--host-addr",
        metavar="ADDRESS",
        help="where peer {i} is reached, such as /ip4/10.77.0.{i}/tcp/0",
    )
    group.add_argument(
        "--host-rate",
        type=quantities.rate_bytes_per_s,
        default=0.0,
        metavar="RATE",
        help="what the hosts' links carry, for the bound (default: as --env says)",
    )


def swarm_bench(args: argparse.Namespace, **fields: Any) -> SwarmBench:
    """What `add_engines` and `add_network` have read, with `fields` besides or instead."""
    from engine.bench.request import SwarmBench  # --help needs none of this
    from engine.config import ModelConfig

    usual: dict[str, Any] = {
        "model": args.model,
        "stages": args.stages,
        "new_tokens": args.new_tokens,
        "model_config": ModelConfig.model_validate(
            {"source": args.model, "dtype": DTYPES.get(args.dtype, args.dtype)}
            | {"device": args.device}
        ),
        "env": args.env,
        "link": args.link,
        "ideal_client_link": args.client_link == "ideal",
        "line_rate_bytes_per_s": args.host_rate,
        "host_exec": args.host_exec,
        "host_addr": args.host_addr,
        "threads": args.threads,
        "cores": args.cores,
        "repeat": args.repeat,
        "seed": args.seed,
    }
    return SwarmBench(**{**usual, **fields})


def print_report(
    args: argparse.Namespace, report: BaseModel, lines: Iterable[str], broken: str
) -> int:
    """Print what was measured.

    Args:
        args: Say whether as JSON.
        report: Of the measurement.
        lines: The same for a person.
        broken: A promise that was not kept in float32, as a sentence; empty: all were.

    Returns:
        The exit code.
    """
    print(report.model_dump_json() if args.json else "\n".join(lines))
    if broken:
        print(broken, file=sys.stderr)
    return 1 if broken and DTYPES.get(args.dtype, args.dtype) == "float32" else 0
