"""`shoal-setup`: the engine's environment of an installed Shoal, and the way to its commands.

    shoal-setup check --json            # what there is, and what setting up would take
    shoal-setup install [--json]        # set up, or bring up to date
    shoal-setup remove                  # take everything away again that this has made
    shoal-setup launch NAME [ARGUMENTS] # `shoal` or `shoal-engine`, set up first if needed

The first three are `shoal setup …` on the command line. With `--json` every line of output is an
object; the app shows them in its own words.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from installers.setup_steps import system_packages, torch_build
from installers.setup_steps.frozen import program_folder, restore_variables
from installers.setup_steps.installed import (
    DOWNLOAD_BYTES,
    NEEDED_BYTES,
    Installed,
    Parts,
    data_folder,
)
from installers.setup_steps.report import JsonReport, Report, SetupFailed

APP = "shoal-app"
_DONE, _FAILED, _INTERRUPTED = 0, 1, 130
_WINDOWLESS = {"--headless", "--once", "--help", "-h", "--version", "--debug"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Obey the command line; returns the exit status (0 done, 1 failed, 2 usage)."""
    restore_variables(os.environ)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["launch"] and len(given) > 1:
        return _launch(given[1], given[2:])
    parser = argparse.ArgumentParser(prog="shoal setup", description=__doc__.splitlines()[0])
    parser.add_argument(
        "command", nargs="?", default="install", choices=["check", "install", "remove"]
    )
    parser.add_argument("--json", action="store_true", help="an object on each line, for programs")
    options = parser.parse_args(given)
    report = JsonReport() if options.json else Report()
    installed = _installed(report)
    if options.command == "check":
        print(json.dumps(_check(installed)) if options.json else _sentence(installed))
        return _DONE

    def work() -> None:
        if options.command == "remove":
            installed.remove()
        else:
            installed.prepare(torch_build.for_this_machine())

    return _told(work, report, as_json=options.json)


def _told(work: Callable[[], None], report: Report, *, as_json: bool) -> int:
    try:
        work()
    except SetupFailed as error:
        if as_json:
            print(json.dumps({"problem": str(error)}), flush=True)
        else:
            report.say(f"shoal: {error}")
        return _FAILED
    except KeyboardInterrupt:
        if not as_json:
            report.say("Interrupted. Start it again to go on.")
        return _INTERRUPTED
    except BrokenPipeError:  # whoever listened has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _INTERRUPTED
    return _DONE


def _installed(report: Report) -> Installed:
    program = program_folder()
    return Installed(Parts(program / "engine"), data_folder(os.environ, program), report)


def _check(installed: Installed) -> dict[str, object]:
    build = torch_build.for_this_machine()
    problem = ""
    if not (ready := installed.is_ready()):
        try:
            installed.require_room(build)
        except SetupFailed as error:
            problem = str(error)
    return {
        "ready": ready,
        "python": str(installed.python),
        "folder": str(installed.path),
        "torch": build.kind,
        "case": build.case,
        "driver": torch_build.NEEDED_DRIVER,
        "download_bytes": DOWNLOAD_BYTES[build.kind],
        "needed_bytes": NEEDED_BYTES[build.kind],
        "free_bytes": installed.free_bytes(),
        "problem": problem,
    }


def _sentence(installed: Installed) -> str:
    if installed.is_ready():
        return f"The engine is set up in {installed.path}."
    build = torch_build.for_this_machine()
    return (
        f"The engine is not set up yet: about {DOWNLOAD_BYTES[build.kind] / 1e9:.1f} GB to download "
        f"and {NEEDED_BYTES[build.kind] / 1e9:.0f} GB of disk in {installed.path}. {build.reason}"
    )


def _launch(name: str, arguments: list[str]) -> int:
    """Become the app or one of the engine's commands."""
    if name == "shoal" and arguments[:1] == ["setup"]:
        return main(arguments[1:])
    if name == "shoal" and arguments[:1] == ["start"]:  # what it does without a word, too
        arguments = arguments[1:]
    is_tray = name == "shoal" and (not arguments or arguments[0].startswith("-"))
    invites = arguments if name == "shoal" and arguments and _is_invite(arguments[0]) else []
    is_wanted = is_tray and not _WINDOWLESS & set(arguments)
    if invites or (is_wanted and system_packages.has_display()):
        app = program_folder() / APP
        words = invites or (["--", *arguments] if arguments else [])
        os.execv(app, [str(app), *words])  # noqa: S606 - never returns
    # What a command prints may be read by a program, so what setup says goes where errors go.
    report = Report(sys.stderr)
    installed = _installed(report)

    def prepare() -> None:
        if not installed.is_ready():
            installed.prepare(torch_build.for_this_machine())

    if status := _told(prepare, report, as_json=False):
        return status
    sys.stdout.flush()
    # Another Python's modules would shadow the environment's.
    for variable in ("PYTHONPATH", "PYTHONHOME"):
        os.environ.pop(variable, None)
    program: Path = installed.bin / name
    return os.execv(program, [str(program), *arguments])  # noqa: S606 - never returns


def _is_invite(word: str) -> bool:
    return word.startswith("shoal://") or word.endswith(".shoal")


if __name__ == "__main__":
    sys.exit(main())
