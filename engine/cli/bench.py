"""`shoal bench`: measurements; everything after the word belongs to `engine.bench`."""

from __future__ import annotations

import argparse

from engine.cli.commands import Commands


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    # With a prefix character that nobody types, this parser takes every word as it is.
    parser = commands.add_parser(
        "bench", help="measure this machine and a swarm on it", add_help=False, prefix_chars="\0"
    )
    parser.add_argument("words", nargs="*")
    parser.set_defaults(run=run, debug=False)


def run(args: argparse.Namespace) -> int:
    """Hand over. Returns the exit code."""
    from engine.bench.main import main  # loads what it measures

    return main(args.words)
