"""`shoal` alone: the tray where there is a screen, else an answer in the terminal."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
from typing import Final, NoReturn

from engine.cli.attach import Attached, attached
from engine.cli.commands import Commands
from engine.cli.conversation import Conversation, repl
from engine.cli.engine_arguments import add_engine_arguments, passed_on
from engine.cli.terminal import say
from engine.core.errors import EngineError

DEMONSTRATION: Final = "In one sentence: why do fish swim in a shoal?"
_QT_LIMIT_S: Final = 30.0


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "start",
        parents=[everywhere],
        help="what shoal does without a command: the tray, or the terminal",
        description="Start the tray with its chat window. Without a display, start an engine, "
        "answer in the terminal, and keep the API running until Ctrl-C.",
    )
    parser.add_argument("--headless", action="store_true", help="the terminal even with a display")
    parser.add_argument("--once", action="store_true", help="headless: end after one answer")
    add_engine_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Start the tray, or go the headless way. Returns the exit code."""
    if not (args.headless or args.once):
        problem = window_problem()
        if problem is None:
            _become_tray(passed_on(args))
        say(f"No window: {problem} Going on in the terminal.")
    return _headless(args)


def _become_tray(words: list[str]) -> NoReturn:
    # The tray takes this process over, so that a service manager or a shell sees one program.
    command = [sys.executable, "-m", "app", *(["--", *words] if words else [])]
    os.execv(command[0], command)  # noqa: S606 - our own program, by its full path


def window_problem() -> str | None:
    """Why no window can be shown, as one sentence; None when one can."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return "there is no display."
    if importlib.util.find_spec("app") is None:
        return "the window's part of Shoal is not installed."
    if importlib.util.find_spec("PySide6") is None:
        return "PySide6 is not installed (`pip install 'shoal[gui]'`)."
    return qt_problem()


def qt_problem() -> str | None:
    """Why Qt cannot be loaded, as one sentence; None when it can.

    Tried in a process of its own: a missing system library shows only there and then.
    """
    probe = [sys.executable, "-c", "import PySide6.QtWidgets"]
    try:
        done = subprocess.run(
            probe, capture_output=True, text=True, timeout=_QT_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "Qt takes too long to load."
    if done.returncode == 0:
        return None
    reason = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    return f"Qt cannot be loaded ({reason.removeprefix('ImportError: ')})."


def _headless(args: argparse.Namespace) -> int:
    # A service manager ends us with SIGTERM; the engine that we started must be waited for.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with attached(args) as engine:
        conversation = Conversation(engine.client)
        _say_address(engine)
        if args.once or not sys.stdin.isatty():
            say(f"> {DEMONSTRATION}")
            say(conversation.ask(DEMONSTRATION).rate_line())
        else:
            repl(conversation)
        if args.once:
            return 0
        say("The API stays up until Ctrl-C.")
        _wait_while_running(engine)
    return 0


def _say_address(engine: Attached) -> None:
    say(f"API: {engine.ready.url}/v1 (token in {engine.ready.token_file})")


def _wait_while_running(engine: Attached) -> None:
    try:
        with engine.client.stream("GET", "/shoal/v1/events", silence_s=30.0) as events:
            for _ in events:
                pass
    except KeyboardInterrupt:
        say("Ending.")
        return
    raise EngineError("The engine has ended; see its log.")
