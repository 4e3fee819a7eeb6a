"""The arguments of `shoal bench papers`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_papers(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Hold the rates that BloomBee's paper has published, and its table of best configurations, "
        "against Shoal's cost model; or rows of your own."
    )
    parser.add_argument(
        "rows",
        nargs="?",
        type=Path,
        metavar="ROWS.json",
        help="a list of objects: model, environment, stages, hidden_size, batch_size, "
        "num_microbatches, compute_ms (a micro-batch's pass through a stage), mbit_per_s, delay_ms "
        "or network_ms (to the next stage), codec_ratio, codec_ms, tokens_per_s as measured, and "
        "calibrates, true on the rows to which the model's overheads are to be fitted",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_papers)


def _papers(args: argparse.Namespace) -> int:
    from engine.bench.papers import report
    from engine.bench.papers.rows import read_rows

    found = report.of_papers() if args.rows is None else report.of_rows(read_rows(args.rows))
    print(found.model_dump_json() if args.json else "\n".join(report.lines(found)))
    return 0
