"""The two commands of `bootstrap.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from installers.setup_steps import checks, system_packages, torch_build
from installers.setup_steps.environment import Environment
from installers.setup_steps.report import Report, SetupFailed

DESKTOP_PACKAGES = Path("tests/support/desktop/apt-packages.txt")
_FAILED, _INTERRUPTED = 1, 130
_WINDOWLESS = {"--headless", "--once", "--help", "-h", "--version"}


def run(root: Path, arguments: Sequence[str]) -> int:
    """Set up and become `shoal`, with its arguments."""
    report = Report()
    environment = Environment(root, report)
    variables = dict(os.environ)
    # Another Python's modules would shadow the ones that were just installed.
    for name in ("PYTHONPATH", "PYTHONHOME"):
        variables.pop(name, None)
    try:
        _refuse_windows()
        environment.prepare(frozenset({"gui"}), torch_build.for_this_machine())
        is_tray = not arguments or arguments[0].startswith("-")
        wants_window = is_tray and not _WINDOWLESS & set(arguments)
        if wants_window and system_packages.has_display() and not _can_show_windows(report):
            for name in ("DISPLAY", "WAYLAND_DISPLAY"):
                variables.pop(name, None)
    except SetupFailed as error:
        return _fail(report, error)
    except KeyboardInterrupt:
        return _interrupted(report)
    sys.stdout.flush()
    program = environment.bin / "shoal"
    return os.execve(program, [str(program), *arguments], variables)  # noqa: S606 - never returns


def test(root: Path, arguments: Sequence[str]) -> int:
    """Set up and run the checks."""
    report = Report()
    environment = Environment(root, report)
    try:
        _refuse_windows()
        environment.prepare(frozenset({"gui", "test"}), torch_build.for_this_machine())
        missing = system_packages.missing_packages()
        missing += system_packages.missing_programs(root / DESKTOP_PACKAGES)
        if missing and not system_packages.install(missing, "for tests on a screen", report):
            report.say(
                "Tests that need a screen will not pass, because programs for them are missing; "
                f"{system_packages.how_to_install(missing)}."
            )
        return checks.run(root, environment.bin, arguments)
    except SetupFailed as error:
        return _fail(report, error)
    except KeyboardInterrupt:
        return _interrupted(report)


COMMANDS: dict[str, Callable[[Path, Sequence[str]], int]] = {"run": run, "test": test}


def _can_show_windows(report: Report) -> bool:
    missing = system_packages.missing_packages()
    try:
        if not missing or system_packages.install(missing, "for windows and the tray", report):
            return True
    except SetupFailed as error:
        report.say(f"{error} Shoal goes on without a window.")
        return False
    report.say(
        "Shoal cannot show its window, because libraries are missing; "
        f"{system_packages.how_to_install(missing)}. It goes on without a window."
    )
    return False


def _refuse_windows() -> None:
    if sys.platform == "win32":
        raise SetupFailed(
            "Shoal's engine does not run on Windows itself, because its network library does not; "
            "run this command inside WSL2 (`wsl --install`)."
        )


def _fail(report: Report, error: SetupFailed) -> int:
    report.say(str(error))
    return _FAILED


def _interrupted(report: Report) -> int:
    report.say("Interrupted. Run the same command again to go on.")
    return _INTERRUPTED
