"""`shoal engine`: the engine without any window."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from pathlib import Path

from engine import config
from engine.cli.commands import Commands
from engine.cli.engine_arguments import add_engine_arguments, invite_text, overrides_of
from engine.cli.quantities import positive
from engine.core.errors import ConfigError, EngineRunsAlready
from engine.core.loading import loading
from engine.localapi.installation import Installation
from engine.localapi.running import Home
from engine.node.options import EngineOptions


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "engine",
        parents=[everywhere],
        help="run the engine without any window",
        description="Run the engine until it is told to end: by Ctrl-C at once, by SIGTERM once running "
        "requests have ended or gone elsewhere, after 20 s at most.",
    )
    add_engine_arguments(parser)
    own = parser.add_argument_group("for programs that start it")
    own.add_argument("--leased", action="store_true", help="end with the last leased event stream")
    own.add_argument(
        "--await-setup",
        action="store_true",
        help="the first time, fetch and announce nothing before the person has said how to begin",
    )
    own.add_argument(
        "--parent-pid", type=positive, metavar="PID", help="end when this process has ended"
    )
    ready = own.add_mutually_exclusive_group()
    ready.add_argument(
        "--ready-fd", type=positive, metavar="N", help="say here when the API answers, and where"
    )
    ready.add_argument("--ready-file", type=Path, metavar="FILE", help="the same, in a file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run it. Returns the exit code."""
    home = Home.from_environment()
    overrides, installation = overrides_of(args), Installation.from_environment()
    options = EngineOptions(
        home=home,
        config=config.load(home.settings_file, overrides),
        overrides=overrides,
        leased=args.leased,
        awaits_setup=args.await_setup,
        ready_fd=args.ready_fd,
        ready_file=args.ready_file,
        stages=args.stages or 1,
        invite=None if args.invite is None else invite_text(args.invite),
        parent_pid=args.parent_pid,
        installation=installation,
        debug=args.debug,
    )
    if options.stages > 1 and args.no_stage:
        raise ConfigError("--stages and --no-stage contradict each other; use one of them.")
    # Arguments are checked before torch and hivemind are loaded, which takes seconds.
    with loading():
        from engine.node.run import run as run_node

    try:
        code = asyncio.run(run_node(options))
    except EngineRunsAlready:
        installation.excuse()
        raise
    logging.shutdown()
    # Everything is closed. Taking torch and hivemind apart would add seconds to "quit".
    os._exit(code)
