"""The command line as a whole: which command, and how a failure looks."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from engine import __version__
from engine.cli import (
    batch,
    bench,
    chat,
    doctor,
    draft,
    engine,
    measure,
    pause,
    plan,
    pruner,
    settings,
    simulate,
    start,
    status,
    swarm,
    update,
)
from engine.cli.terminal import printable, say
from engine.core.errors import EngineError
from engine.localapi.launch import ERROR_PREFIX

DONE: Final = 0
FAILED: Final = 1

_OWN_OPTIONS: Final = ("-h", "--help", "--version")

_EPILOG: Final = """\
Without a command, shoal starts the tray with its chat window or, without a display, answers in
the terminal (options: `shoal start --help`). Exit codes: 0 done, 1 failed, 2 usage.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments after the program's name; None: the process's own.

    Returns:
        0 done, 1 failed.

    Raises:
        SystemExit: With 2 for wrong usage, with 0 after `--help` or `--version`.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words[:1]
    if debug:
        words = words[1:]
    if not words or (words[0].startswith("-") and words[0] not in _OWN_OPTIONS):
        words.insert(0, "start")
    args = parser().parse_args(words)
    debug = debug or args.debug
    args.debug = debug
    try:
        result: int = args.run(args)
        sys.stdout.flush()
    except EngineError as error:
        if debug:
            traceback.print_exc()
        say(printable(f"{ERROR_PREFIX}{error}"))
        return FAILED
    except KeyboardInterrupt:
        say(f"{ERROR_PREFIX}Interrupted.")
        return FAILED
    except BrokenPipeError:
        # The reader of our output has left (`shoal chat … | head`); Python must not complain again
        # when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return result


def engine_main() -> int:
    """Run `shoal engine`, for services."""
    return main(["engine", *sys.argv[1:]])


def parser() -> argparse.ArgumentParser:
    """Every command with its options; the manual page is made from it."""
    whole = argparse.ArgumentParser(
        prog="shoal",
        description="Lend your GPU, use the shoal: large language models on a swarm of "
        "volunteers' machines.",
        epilog=_EPILOG,
    )
    whole.add_argument("--version", action="version", version=f"shoal {__version__}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument("--debug", action="store_true", help="show where an error comes from")
    for command in (
        start,
        engine,
        chat,
        batch,
        status,
        pause,
        settings,
        swarm,
        measure,
        plan,
        simulate,
        draft,
        pruner,
        update,
        doctor,
        bench,
    ):
        command.add_to(commands, everywhere)
    return whole
