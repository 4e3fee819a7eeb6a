"""`shoal pruner`: what a first stage leaves out of a draft before it sends it on."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.cli.commands import Commands
from engine.cli.quantities import positive
from engine.cli.terminal import ProgressLine, printable
from engine.core.errors import ConfigError
from engine.localapi.running import Home
from engine.localapi.schema import Progress


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command with its own."""
    parser = commands.add_parser(
        "pruner",
        help="teach a first stage to prune drafts",
        description="What a first stage leaves out of a draft before it sends it on.",
    )
    own = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    train = own.add_parser(
        "train",
        parents=[everywhere],
        help="train a pruner",
        description="Teach a first stage of so many blocks to judge drafted tokens, with the answers "
        "and the draft that `shoal draft train` has made in FOLDER.",
    )
    train.add_argument("folder", type=Path, metavar="FOLDER", help="of `shoal draft train -o`")
    train.add_argument(
        "--target", default="starter", metavar="SOURCE", help="as it was given there"
    )
    train.add_argument("--first-blocks", type=positive, required=True, metavar="N")
    train.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    train.add_argument("--answers", type=positive, default=256, metavar="N", help="to learn from")
    train.add_argument("--steps", type=positive, default=400, metavar="N", help="of training")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--threads", type=positive, metavar="N", help="compute threads")
    train.add_argument("--json", action="store_true", help="print one JSON object at the end")
    train.set_defaults(run=_train)


def _train(args: argparse.Namespace) -> int:
    import torch

    from engine.models.sources import resolve
    from engine.speculation.training.answers import count_groups, made_groups, read_answers
    from engine.speculation.training.pruning import train_pruner
    from engine.speculation.training.run import DRAFT, HELD_OUT

    if args.threads:
        torch.set_num_threads(args.threads)
    with ProgressLine() as line:

        def show(what: str, done: float, total: float, remark: str) -> None:
            parts = [f"{done:.0f} of {total:.0f}" if total else "", remark]
            line.show(what, ", ".join(part for part in parts if part))

        def show_fetching(progress: Progress) -> None:
            show(progress.what, progress.done, progress.total, "")

        files = resolve(args.target, Home.from_environment().models_dir, "float32", show_fetching)
        if args.first_blocks >= files.spec.num_hidden_layers:
            raise ConfigError(
                f"{files.spec.name} has {files.spec.num_hidden_layers} blocks; a first stage that "
                "sends something on holds fewer."
            )
        num_groups = min(count_groups(args.answers), made_groups(args.folder))
        if num_groups == 0:
            raise ConfigError(
                f"{args.folder} holds no answers; name the folder that `shoal draft train` wrote."
            )
        answers = read_answers(args.folder, num_groups)
        description = train_pruner(
            files,
            args.folder / DRAFT,
            answers[: args.answers],
            read_answers(args.folder / HELD_OUT, 1),
            args.output,
            num_blocks=args.first_blocks,
            steps=args.steps,
            seed=args.seed,
            show=show,
        )
    if args.json:
        print(description.model_dump_json())
        return 0
    print(printable(f"The pruner is in {args.output}."))
    for row in description.measured:
        print(
            f"  τ {row['prune_threshold']}: {row['surviving']:.0%} of the nodes and "
            f"{row['remaining']:.0%} of the accepted tokens are left"
        )
    return 0
