"""The setup's own program: `provision.py {install,remove} --root FOLDER --state FOLDER --exchange FOLDER`.

The installer runs it with uv, which fetches a Python first. Whatever it does is done once: what is
there already is left alone, and what was cut off is done again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

SETUP = Path(__file__).resolve().parents[2]
if (wheels := sorted(SETUP.glob("shoal-*.whl"))) and str(SETUP) not in sys.path:
    sys.path[:0] = [str(SETUP), str(wheels[0])]  # app.wsl is used out of the wheel

from app.wsl import CallStopped, Wsl, place_of  # noqa: E402 - found by the lines above
from installers.setup_steps.report import SetupFailed  # noqa: E402
from installers.windows.beside import Beside  # noqa: E402
from installers.windows.checks import build_for, problem  # noqa: E402
from installers.windows.distribution import Distribution, RestartNeeded, WordNeeded  # noqa: E402
from installers.windows.engine_progress import EngineProgress  # noqa: E402
from installers.windows.folders import Folders  # noqa: E402
from installers.windows.kept import Kept  # noqa: E402
from installers.windows.machine import Machine  # noqa: E402
from installers.windows.reachability import Reachability  # noqa: E402
from installers.windows.report import Report, SetupStopped  # noqa: E402
from installers.windows.stamps import Stamps  # noqa: E402
from installers.windows.windows_app import WindowsApp  # noqa: E402

FORWARDED = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_RESTART = (
    "Windows has to be restarted before Shoal's setup can go on (restart, not shut down); it goes on by "
    "itself when you have signed in again."
)


class Exit(IntEnum):
    """How it ended; `result.txt` has the sentence."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    STOPPED = 3
    WORD_NEEDED = 4
    """The sentence is `NAME|question`."""
    RESTART_NEEDED = 5


def main(
    arguments: Sequence[str] | None = None,
    *,
    machine: Machine | None = None,
    wsl_command: Sequence[str] | None = None,
    uv: Sequence[str] | None = None,
) -> Exit:
    """Obey the command line.

    Args:
        arguments: As on the command line.
        machine: Another computer than this one.
        wsl_command: Another program than `wsl.exe`.
        uv: Another program than the setup's `uv.exe`.
    """
    parser = argparse.ArgumentParser(prog="provision.py", description=__doc__)
    parser.add_argument("task", choices=("install", "remove"))
    parser.add_argument("--root", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--exchange", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--state", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--agreed", type=_names, default=(), metavar="NAME,…")
    parser.add_argument("--repair", action="store_true")
    parser.add_argument("--reachable", choices=("yes", "no"))
    parser.add_argument("--keep-data", action="store_true")
    options = parser.parse_args(arguments)
    report = Report(options.exchange, options.state / "logs" / "setup.log")
    report.note(f"{options.task}, Python {sys.version.split()[0]}, {options}")
    try:
        setup = _Setup(options, report, machine or Machine(), wsl_command, uv)
        sentence = setup.install() if options.task == "install" else setup.remove()
        code = Exit.DONE
    except WordNeeded as need:
        code, sentence = Exit.WORD_NEEDED, f"{need.name}|{need}"
    except RestartNeeded:
        code, sentence = Exit.RESTART_NEEDED, _RESTART
    except (SetupStopped, CallStopped):
        code = Exit.STOPPED
        sentence = "The setup was stopped; start it again to go on, what was fetched is kept."
    except SetupFailed as error:
        code, sentence = Exit.FAILED, str(error)
    except OSError as error:
        code = Exit.FAILED
        sentence = (
            f"Shoal's setup cannot go on in {options.root} ({error.strerror or error}); free some space or "
            f"correct the folder's rights, then start it again. Details are in {report.log}."
        )
    except Exception as error:  # noqa: BLE001 - else the wizard would have no sentence at all
        report.note(traceback.format_exc())
        code = Exit.FAILED
        sentence = (
            f"Shoal's setup met something that it did not expect ({type(error).__name__}), so it stopped; "
            f"start it again, and if that does not help, report it with {report.log}."
        )
    report.result(sentence)
    return code


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


class _Setup:
    """One run."""

    def __init__(
        self,
        options: argparse.Namespace,
        report: Report,
        machine: Machine,
        wsl_command: Sequence[str] | None,
        uv: Sequence[str] | None,
    ) -> None:
        self._options = options
        self._report = report
        self._machine = machine
        self._folders = Folders(options.root)
        self._archive = options.state / "kept" / "engine.tar"
        self._stamps = Stamps(self._folders.stamps)
        self._beside = Beside(self._folders, _version(self._folders.setup))
        proxies = {
            **machine.proxies(),
            **{name: os.environ[name] for name in FORWARDED if os.environ.get(name)},
        }
        os.environ.update(proxies)  # for our own downloads, and for Linux by WSLENV
        progress = EngineProgress(report)
        self._wsl = Wsl(wsl_command, progress.heard, report.is_stop_wanted, FORWARDED)
        self._distribution = Distribution(
            self._folders,
            self._stamps,
            self._beside,
            self._wsl,
            machine,
            report,
            progress,
            options.agreed,
        )
        self._kept = Kept(self._wsl, report)
        program = tuple(uv or (str(self._folders.setup / "uv.exe"),))
        self._app = WindowsApp(self._beside, report, program, proxies)

    def install(self) -> str:
        """Install, go on, repair or update."""
        self._report.progress(0.01, "Looking at this computer")
        self._beside.begin(repairs=self._options.repair)
        computer = self._machine.look(self._folders.root)
        build = build_for(computer)
        self._report.note(f"{computer}; {build.reason}")
        has_app = self._beside.stamps.get("app") is not None
        if wrong := problem(computer, has_app=has_app, has_engine=self._beside.has("engine")):
            raise SetupFailed(wrong)
        has_card = build.case != "no_card"
        if has_card and build.kind == "cpu" and "without-card" not in self._options.agreed:
            raise WordNeeded("without-card", f"{build.reason} Go on without the card?")
        self._report.phase(0.02, 0.05)
        look = self._distribution.prepare_wsl()
        fingerprint = self._fingerprint()
        self._report.phase(0.05, 0.25)
        self._app.have(fingerprint)
        self._report.phase(0.25, 0.35)
        self._distribution.have_linux(look.version)
        self._report.phase(0.35, 0.98)
        self._distribution.have_engine(f"{fingerprint} {build.kind}")
        self._report.phase(0.98, 1.0)
        self._kept.restore(self._archive)
        before = self._beside.switch()
        told = self._reachability().change(self._options.reachable, computer.windows_build)
        for version in self._beside.left_over():
            if self._distribution.remove_engine(version):
                self._beside.remove(version)
        shutil.rmtree(self._folders.downloads, ignore_errors=True)
        done = "Shoal is installed."
        if before:
            done = f"Shoal {self._beside.version} is tried at the next start; if it fails, {before} runs again."
        return f"{done} {told}".rstrip()

    def remove(self) -> str:
        """Remove what the installer itself does not know of."""
        self._report.progress(0.05, "Ending Shoal's engine")
        self._reachability().take_back()
        if self._options.keep_data and self._beside.has("engine"):
            self._report.progress(0.2, "Saving chats and settings")
            self._kept.keep(self._archive)
        self._report.progress(0.6, "Removing Shoal's Linux from WSL")
        self._distribution.remove()
        return "Shoal's engine is removed."

    def _reachability(self) -> Reachability:
        engine = f"{place_of(self._beside.running)}/environment/bin/shoal"
        return Reachability(engine, self._wsl, self._machine, self._stamps, self._report)

    def _fingerprint(self) -> str:
        """Of everything that decides what is installed."""
        digest = hashlib.sha256()
        for file in sorted(self._folders.setup.rglob("*")):
            if file.is_file() and file.suffix not in (".exe", ".pyc"):
                digest.update(file.read_bytes())
        return digest.hexdigest()


def _version(setup: Path) -> str:
    """Of the Shoal that this setup brings.

    Raises:
        SetupFailed: It brings none, or several.
    """
    wheels = list(setup.glob("shoal-*.whl"))
    if len(wheels) != 1:
        raise SetupFailed(
            f"The files of Shoal's setup in {setup} are not whole; get the setup and start it again."
        )
    return wheels[0].name.split("-")[1]


if __name__ == "__main__":
    sys.exit(main())
