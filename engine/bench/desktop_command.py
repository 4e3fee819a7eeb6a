"""The arguments of `shoal bench desktop`; the app measures itself, with an engine of ours."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys

from engine.bench import quantities
from engine.bench.children import BenchFailed


def add_desktop(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Measure the tray and its windows: launch, memory, idle CPU, and how long the main thread "
        "is away from its events while an answer streams into a conversation of 10,000 messages "
        "and while a batch of 50,000 rows runs. The app is started several times on a home of its "
        "own and used by itself for about two minutes; leave mouse and keyboard alone meanwhile."
    )
    parser.add_argument("--launches", type=quantities.positive, default=5, metavar="N")
    for name, default, meaning in (
        ("--idle-s", 30, "how long the app is left idle"),
        ("--stream-s", 20, "how long an answer streams"),
        ("--batch-s", 20, "how long the batch is watched"),
        ("--settle-s", 3, "rest before and after each of these"),
    ):
        parser.add_argument(
            name, type=quantities.seconds, default=default, metavar="S", help=meaning
        )
    parser.add_argument("--rows", type=quantities.positive, default=50_000, metavar="N")
    parser.add_argument("--messages", type=quantities.positive, default=10_000, metavar="N")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_desktop)


def _desktop(args: argparse.Namespace) -> int:
    if importlib.util.find_spec("app") is None:
        raise BenchFailed(
            "The window's part of Shoal is not installed; install it with `pip install "
            "'shoal[gui]'`."
        )
    words = [
        word
        for name in ("launches", "idle_s", "stream_s", "batch_s", "settle_s", "rows", "messages")
        for word in ("--" + name.replace("_", "-"), str(getattr(args, name)))
    ]
    engine = [sys.executable, "-m", "engine.bench.desktop_engine"]
    # The engine's packages know nothing of the app, so it is another program.
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "app.bench",
            *words,
            *(["--json"] if args.json else []),
            "--",
            *engine,
        ],
        check=False,
    )
    return done.returncode
