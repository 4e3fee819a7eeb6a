"""What `shoal draft train` and `shoal pruner train` have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.quantities import positive
from engine.cli.terminal import ProgressLine
from engine.localapi.running import Home
from engine.localapi.schema import Progress

if TYPE_CHECKING:
    from engine.models.layout import ModelFiles

Show = Callable[[str, float, float, str], None]
"""What is going on, how much of it is done, how much there is, and a remark."""


def add_arguments(train: argparse.ArgumentParser) -> None:
    """Add what both take."""
    train.add_argument(
        "--target", default="starter", metavar="SOURCE", help="starter, folder or Hub id"
    )
    train.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--threads", type=positive, metavar="N", help="compute threads")
    train.add_argument("--json", action="store_true", help="print one JSON object at the end")


@contextmanager
def target_of(args: argparse.Namespace) -> Iterator[tuple[ModelFiles, Show]]:
    """The target's files, fetched if need be, and what shows how far it is.

    Raises:
        EngineError: The target cannot be had.
    """
    import torch

    from engine.models.sources import resolve

    if args.threads:
        torch.set_num_threads(args.threads)
    with ProgressLine() as line:

        def show(what: str, done: float, total: float, remark: str) -> None:
            parts = [f"{done:.0f} of {total:.0f}" if total else "", remark]
            line.show(what, ", ".join(part for part in parts if part))

        def show_fetching(progress: Progress) -> None:
            show(progress.what, progress.done, progress.total, "")

        models_dir = Home.from_environment().models_dir
        yield resolve(args.target, models_dir, "float32", show_fetching), show
