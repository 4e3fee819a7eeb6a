"""`shoal pruner`: what a first stage leaves out of a draft before it sends it on."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.cli.commands import Commands
from engine.cli.quantities import positive
from engine.cli.terminal import printable
from engine.cli.training import add_arguments, target_of
from engine.core.errors import ConfigError


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
    add_arguments(train)
    train.add_argument("--first-blocks", type=positive, required=True, metavar="N")
    train.add_argument(
        "--data",
        type=Path,
        metavar="DATA",
        help="prompts of which the draft has not learned from all: the others are answered, and show "
        "what its proposals are worth on what is new to it",
    )
    train.add_argument("--answers", type=positive, default=3072, metavar="N", help="to learn from")
    train.add_argument("--judged", type=positive, default=192, metavar="N", help="to judge by")
    train.add_argument("--steps", type=positive, default=2000, metavar="N", help="of training")
    train.add_argument("--origin", default="", metavar="TEXT", help="of DATA, kept in the pruner")
    train.set_defaults(run=_train)


def _train(args: argparse.Namespace) -> int:
    from engine.speculation.training.answers import made_groups, read_answers
    from engine.speculation.training.pruning import train_pruner
    from engine.speculation.training.recipe import read_prompts
    from engine.speculation.training.run import DRAFT, HELD_OUT, answer_new_prompts

    with target_of(args) as (files, show):
        if args.first_blocks >= files.spec.num_hidden_layers:
            raise ConfigError(
                f"{files.spec.name} has {files.spec.num_hidden_layers} blocks; a first stage that "
                "sends something on holds fewer."
            )
        num_groups = made_groups(args.folder)
        if num_groups == 0:
            raise ConfigError(
                f"{args.folder} holds no answers; name the folder that `shoal draft train` wrote."
            )
        learned = read_answers(args.folder, num_groups)
        answers, examples = learned[: args.answers], read_answers(args.folder / HELD_OUT, 1)
        if args.data is None:
            judged = answers[::2][: args.judged]
        else:
            prompts, known = read_prompts(args.data), [*learned, *examples]
            judged = answer_new_prompts(files, args.folder, prompts, known, args.judged, show)
        description = train_pruner(
            files,
            args.folder / DRAFT,
            answers,
            judged,
            examples,
            args.output,
            num_blocks=args.first_blocks,
            steps=args.steps,
            seed=args.seed,
            data_origin=args.origin,
            show=show,
        )
    if args.json:
        print(description.model_dump_json())
        return 0
    print(printable(f"The pruner is in {args.output}."))
    for row in description.measured:
        print(
            f"  τ {row.prune_threshold}: {row.surviving:.0%} of the nodes and {row.remaining:.0%} of "
            "the accepted tokens are left"
        )
    return 0
