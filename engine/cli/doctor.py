"""`shoal doctor`: is everything here that Shoal needs, and what to do where it is not."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from engine import __version__
from engine.cli import machine_checks, shoal_checks
from engine.cli.checks import Check, Level
from engine.cli.commands import Commands
from engine.core.errors import ConfigError
from engine.core.whole_file import write_whole
from engine.localapi import diagnostics
from engine.localapi.client import ApiClient
from engine.localapi.running import Home, find_running
from engine.localapi.statistics import DiagnosticsEntry, DiagnosticsPreview

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
    parser.add_argument(
        "--archive",
        type=Path,
        metavar="FILE",
        help="write a zip with log, settings and findings, to be shown to who helps; names, "
        "addresses and keys are taken out",
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
    findings = {"ok": not failed, "checks": [check.json() for check in results]}
    if args.archive is not None:
        names = _write_archive(home, args.archive, findings)
        if not args.json:
            print(f"Written to {args.archive}: {', '.join(names)}. Look before you send it.")
    if args.json:
        print(json.dumps(findings))
    return 1 if failed else 0


def _write_archive(home: Home, path: Path, findings: dict[str, object]) -> list[str]:
    ready = find_running(home)
    if ready is None:
        files = diagnostics.entries(home, __version__, {"checks": findings})
    else:
        answer = ApiClient.of(ready).call("GET", "/shoal/v1/diagnostics")
        told = DiagnosticsPreview.model_validate(answer).entries
        text = diagnostics.redact(json.dumps(findings, indent=2))
        files = (*told, DiagnosticsEntry(name="checks.json", about="The checks", text=text))
    try:
        write_whole(path.absolute(), diagnostics.archive(files), mode=0o600)
    except OSError as error:
        raise ConfigError(
            f"The archive cannot be written to {path} ({error.strerror}); choose another place."
        ) from error
    return [file.name for file in files]


def _print(check: Check) -> None:
    level = check.level.value
    if sys.stdout.isatty():
        level = f"\033[{_COLOURS[check.level]}m{level}\033[0m"
        level += " " * (4 - len(check.level.value))
    print(f"{level:<4}  {check.name:<10} {check.found}", flush=True)
    if check.advice:
        print(f"{'':<16} → {check.advice}")
