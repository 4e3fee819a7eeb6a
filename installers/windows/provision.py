"""The setup's own program: `provision.py {install,remove} --root FOLDER --state FOLDER --exchange FOLDER`.

The installer runs it with uv, which fetches a Python first. Whatever it does is done once: what is
there already is left alone, and what was cut off is done again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

SETUP = Path(__file__).resolve().parents[2]
if (wheels := sorted(SETUP.glob("shoal-*.whl"))) and str(SETUP) not in sys.path:
    sys.path[:0] = [str(SETUP), str(wheels[0])]  # app.wsl is used out of the wheel

from app.wsl import CallStopped, Wsl  # noqa: E402 - found by the lines above
from installers.setup_steps.report import SetupFailed  # noqa: E402
from installers.windows import networking  # noqa: E402
from installers.windows.checks import OLDEST_MIRRORED_BUILD, build_for, problem  # noqa: E402
from installers.windows.distribution import (  # noqa: E402
    ENGINE,
    Distribution,
    RestartNeeded,
    WordNeeded,
)
from installers.windows.engine_progress import EngineProgress  # noqa: E402
from installers.windows.folders import Folders  # noqa: E402
from installers.windows.machine import Declined, Machine  # noqa: E402
from installers.windows.report import Report, SetupStopped  # noqa: E402
from installers.windows.stamps import Stamps  # noqa: E402
from installers.windows.windows_app import WindowsApp  # noqa: E402

FORWARDED = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_RESTART = (
    "Windows has to be restarted before Shoal's setup can go on (restart, not shut down). It goes on by "
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
        sentence = "Stopped. Start the setup again to go on; what was fetched is kept."
    except SetupFailed as error:
        code, sentence = Exit.FAILED, str(error)
    except OSError as error:
        code = Exit.FAILED
        sentence = (
            f"Shoal's setup cannot go on in {options.root} ({error.strerror or error}); free some space or "
            f"correct the folder's rights, then start it again. Details are in {report.log}."
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
        self._kept = options.state / "kept" / "engine.tar"
        self._stamps = Stamps(self._folders.stamps)
        proxies = {
            **machine.proxies(),
            **{name: os.environ[name] for name in FORWARDED if os.environ.get(name)},
        }
        os.environ.update(proxies)  # for our own downloads, and for Linux by WSLENV
        progress = EngineProgress(report)
        self._wsl = Wsl(wsl_command, progress.heard, report.is_stop_wanted, FORWARDED)
        self._distribution = Distribution(
            self._folders, self._stamps, self._wsl, machine, report, progress, options.agreed
        )
        program = tuple(uv or (str(self._folders.setup / "uv.exe"),))
        self._app = WindowsApp(self._folders, self._stamps, report, program, proxies)

    def install(self) -> str:
        """Install, go on, repair or update."""
        self._report.progress(0.01, "Looking at this computer")
        self._folders.root.mkdir(parents=True, exist_ok=True)
        if self._options.repair:
            for step in ("app", "engine"):
                self._stamps.put(step, None)
        computer = self._machine.look(self._folders.root)
        build = build_for(computer)
        self._report.note(f"{computer}; {build.reason}")
        has_app, has_engine = (self._stamps.get(step) is not None for step in ("app", "engine"))
        if wrong := problem(computer, has_app=has_app, has_engine=has_engine):
            raise SetupFailed(wrong)
        if computer.driver and build.kind == "cpu" and "without-card" not in self._options.agreed:
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
        self._distribution.restore(self._kept)
        told = self._change_reachability(computer.windows_build)
        shutil.rmtree(self._folders.downloads, ignore_errors=True)
        return f"Shoal is installed. {told}".rstrip()

    def remove(self) -> str:
        """Remove what the installer itself does not know of."""
        self._report.progress(0.05, "Ending Shoal's engine")
        if self._stamps.get("reachable") is not None:
            self._close()
            self._listen(None)  # the settings that are kept; without a Linux there are none
            self._stamps.put("reachable", None)
        has_data = self._stamps.get("engine") is not None
        if self._options.keep_data and has_data:
            self._report.progress(0.2, "Saving chats and settings")
            self._distribution.keep(self._kept)
        self._report.progress(0.6, "Removing Shoal's Linux from WSL")
        self._distribution.remove()
        return "Shoal's engine is removed."

    def _change_reachability(self, windows_build: int) -> str:
        """As the person wants it; returns what there is to say about it."""
        wanted = self._options.reachable
        if wanted == "no" and self._stamps.get("reachable") is not None:
            self._close()
            if not self._listen(None):
                raise SetupFailed(
                    "The port is closed to others, but Shoal's engine could not be told; start the setup "
                    f"again. Details are in {self._report.log}."
                )
            self._stamps.put("reachable", None)
        if wanted != "yes":
            return ""
        if windows_build < OLDEST_MIRRORED_BUILD:
            return (
                "Others cannot connect to this computer directly, because that needs Windows 11 22H2 or "
                "newer; the engine works through other members instead."
            )
        was_open = self._stamps.get("reachable") == "yes"
        if wrong := self._open(was_open=was_open):
            what = "may no longer be able to" if was_open else "cannot"
            return f"Others {what} connect to this computer directly, because {wrong} and start the setup again."
        return "Others can connect to this computer directly after its next restart."

    def _open(self, *, was_open: bool) -> str:
        """Open this computer to others; returns why that cannot be, and then all is as it was."""
        config = Path.home() / ".wslconfig"
        if not was_open:
            self._stamps.put("reachable", "opening")
        has_changed, wrong = False, ""
        try:
            has_changed = networking.change_settings(config, is_mirrored=True)
            if not networking.is_mirrored(config):
                wrong = f"{config} sets another networkingMode; change it to mirrored"
        except OSError as error:
            wrong = f"{config} cannot be changed ({error.strerror}); correct its rights"
        is_to_be_told = not wrong
        if is_to_be_told and not self._listen(networking.PORT):
            wrong = f"Shoal's engine could not be told (details are in {self._report.log}); try once more"
        wrong = wrong or self._open_port()
        if not wrong:
            self._stamps.put("reachable", "yes")
        elif not was_open:
            if has_changed:
                networking.change_settings(config, is_mirrored=False)
            if is_to_be_told:
                self._listen(None)
            self._stamps.put("reachable", None)
        return wrong

    def _open_port(self) -> str:
        try:
            code = self._machine.run_as_administrator(networking.firewall_command(is_open=True))
        except (Declined, OSError):
            return "Windows was not allowed to open a port; try once more"
        return f"Windows could not open a port (exit code {code}); try once more" if code else ""

    def _listen(self, port: int | None) -> bool:
        """Have the engine listen to others or only reach out; returns whether it will."""
        places = [] if port is None else [f"/ip4/0.0.0.0/tcp/{port}"]
        answer = self._wsl.run(ENGINE, "settings", "set", f"swarm.listen={json.dumps(places)}")
        if answer.code != 0:
            self._report.note(
                f"swarm.listen={places}: exit code {answer.code}: {answer.text.strip()}"
            )
        return answer.code == 0

    def _close(self) -> None:
        try:
            code = self._machine.run_as_administrator(networking.firewall_command(is_open=False))
        except (Declined, OSError) as error:
            raise SetupFailed(
                f"The firewall's rule “{networking.RULE}” could not be removed, because Windows was not "
                "allowed to; start again when somebody with an administrator's rights is there."
            ) from error
        if code != 0:
            raise SetupFailed(
                f"The firewall's rule “{networking.RULE}” could not be removed (exit code {code}); remove "
                "it in Windows' firewall settings if it is there, or start again to try once more."
            )
        networking.change_settings(Path.home() / ".wslconfig", is_mirrored=False)

    def _fingerprint(self) -> str:
        """Of everything that decides what is installed."""
        digest = hashlib.sha256()
        for file in sorted(self._folders.setup.rglob("*")):
            if file.is_file() and file.suffix not in (".exe", ".pyc"):
                digest.update(file.read_bytes())
        return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
