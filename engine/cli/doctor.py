"""`shoal doctor`: is everything here that Shoal needs, and what to do where it is not."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Final

from engine.cli import machine_checks, shoal_checks
from engine.cli.checks import Check, Level
from engine.cli.commands import Commands
from engine.localapi.running import Home

_CHECKS: Final[tuple[Callable[[Home], Sequence[Check]], ...]] = (
    machine_checks.python,
    machine_checks.torch_and_gpu,
    machine_checks.libraries,
    machine_checks.window,
    machine_checks.libp2p,
    machine_checks.clock,
    shoal_checks.folders,
    shoal_checks.disk,
    shoal_checks.settings,
    shoal_checks.port,
    shoal_checks.engine,
)
_COLOURS: Final = {Level.OK: "32", Level.WARN: "33", Level.FAIL: "31"}


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "doctor", parents=[everywhere], help="find what is wrong here", description=__doc__
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check everything. Returns 1 if something fails that Shoal cannot do without."""
    home = Home.from_environment()
    results: list[Check] = []
    for checks in _CHECKS:
        for result in checks(home):
            results.append(result)
            if not args.json:
                _print(result)
    failed = any(result.level is Level.FAIL for result in results)
    if args.json:
        print(json.dumps({"ok": not failed, "checks": [check.json() for check in results]}))
    return 1 if failed else 0


def _print(check: Check) -> None:
    level = check.level.value
    if sys.stdout.isatty():
        level = f"\033[{_COLOURS[check.level]}m{level}\033[0m"
        level += " " * (4 - len(check.level.value))
    print(f"{level:<4}  {check.name:<10} {check.found}", flush=True)
    if check.advice:
        print(f"{'':<16} → {check.advice}")
