"""The checks of this repository: one list, the same on every machine and in CI."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", ("ruff", "format", "--check", ".")),
    ("lint", ("ruff", "check", ".")),
    ("imports", ("lint-imports",)),
    ("types", ("mypy", "--num-workers=2")),
    ("tests", ("pytest", "--numprocesses=3", "--dist=loadfile", "--no-loadscope-reorder")),
)
"""Three test processes on two cores: most tests wait for engines. Tests of one file share fixtures;
files are taken in the order of their names, which has the longest, `end2end`, first."""


def run(root: Path, programs: Path, pytest_arguments: Sequence[str]) -> int:
    """Run every check, or with arguments the chosen tests only.

    Args:
        root: The checkout.
        programs: The environment's `bin`.
        pytest_arguments: Handed to pytest.

    Returns:
        0 if all passed, else 1.
    """
    checks = CHECKS if not pytest_arguments else (("tests", ("pytest",)),)
    environment = {**os.environ, "VIRTUAL_ENV": str(programs.parent)}
    environment["PATH"] = os.pathsep.join((str(programs), os.environ.get("PATH", os.defpath)))
    results, failed = [], False
    for name, command in checks:
        line = [*command, *pytest_arguments]
        print(f"── {name}: {' '.join(line)}", flush=True)
        started_s = time.monotonic()
        status = _run(line, root, programs, environment)
        verdict = "ok" if status == 0 else "FAILED"
        if name == "tests" and status == 1 and not pytest_arguments:
            # Limits in seconds that hold on an idle machine may not hold beside another test.
            print("── tests: those that failed, once more, alone", flush=True)
            status = _run(["pytest", "--last-failed"], root, programs, environment)
            verdict = "ok when run alone" if status == 0 else "FAILED"
        failed = failed or status != 0
        results.append(f"{name} {verdict} ({time.monotonic() - started_s:.1f} s)")
    print(f"── checks: {', '.join(results)}", flush=True)
    return int(failed)


def _run(line: Sequence[str], root: Path, programs: Path, environment: dict[str, str]) -> int:
    return subprocess.run(
        [programs / line[0], *line[1:]], cwd=root, env=environment, check=False
    ).returncode
