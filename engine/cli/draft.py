"""`shoal draft`: small models that draft for large ones."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from engine.cli.commands import Commands
from engine.cli.quantities import positive
from engine.cli.terminal import printable
from engine.cli.training import add_arguments, target_of
from engine.core.errors import ConfigError


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command with its own."""
    parser = commands.add_parser(
        "draft",
        help="make a small model that drafts for a large one",
        description="Small models that draft for large ones.",
    )
    own = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    train = own.add_parser(
        "train",
        parents=[everywhere],
        help="train a draft for a model that has no smaller sibling",
        description="Copy the target's first blocks and teach them, on its own answers to the "
        "prompts in DATA, to say what it would say. Whatever ends the command, the same one goes on "
        "from there.",
    )
    add_arguments(train)
    train.add_argument(
        "--data", type=Path, required=True, metavar="DATA", help="a prompt on each line"
    )
    train.add_argument(
        "--held-out",
        type=Path,
        metavar="FILE",
        help="prompts to evaluate with; without it every twentieth of DATA",
    )
    train.add_argument("--answers", type=positive, default=2000, metavar="N", help="to learn from")
    train.add_argument("--steps", type=positive, default=3000, metavar="N", help="of training")
    train.add_argument("--blocks", type=positive, default=3, metavar="N", help="that are copied")
    train.add_argument(
        "--vocabulary",
        type=positive,
        metavar="N",
        help="let it propose the N commonest tokens alone, which is faster (default 8192)",
    )
    train.add_argument("--origin", default="", metavar="TEXT", help="of DATA, kept in the draft")
    train.set_defaults(run=_train)


def _train(args: argparse.Namespace) -> int:
    from engine.speculation.training.recipe import Recipe, prompts_sha256, read_prompts
    from engine.speculation.training.run import train_draft

    prompts = read_prompts(args.data)
    held_out = read_prompts(args.held_out) if args.held_out else prompts[::20]
    prompts = tuple(prompt for prompt in prompts if prompt not in set(held_out))
    if not prompts:
        raise ConfigError(f"All prompts of {args.data} are held out; give more of them.")
    with target_of(args) as (files, show):
        if args.blocks >= files.spec.num_hidden_layers:
            raise ConfigError(
                f"{files.spec.name} has {files.spec.num_hidden_layers} blocks; a draft must have fewer."
            )
        recipe = Recipe(
            target=files.spec.model_id,
            prompts_sha256=prompts_sha256(prompts),
            num_blocks=args.blocks,
            vocabulary_size=min(args.vocabulary or 8192, files.spec.vocab_size),
            seed=args.seed,
        )
        outcome = train_draft(
            files,
            recipe,
            prompts,
            held_out,
            args.output,
            num_answers=args.answers,
            steps=args.steps,
            data_origin=args.origin,
            show=show,
        )
    if args.json:
        print(json.dumps(outcome.as_json()))
        return 0
    print(printable(f"The draft is in {outcome.directory}."))
    for name, value in outcome.description.held_out.items():
        print(f"  {name.replace('_', ' of ')}: {value:.2f} tokens a round on held-out prompts")
    for row in outcome.agreements:
        print(
            f"  temperature {row.temperature}: shared noise accepts {row.shared_noise:.3f}, "
            f"at most {row.most:.3f}"
        )
    return 0
