"""The engine's Linux: turned on, imported, filled and tried; every step can be cut off and repeated."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from app.wsl import PLACE, Look, Wsl, WslFailed, place_of
from app.wsl_troubles import Trouble, sentence
from installers.setup_steps.report import SetupFailed
from installers.windows.beside import Beside
from installers.windows.download import Source, fetch
from installers.windows.engine_progress import EngineProgress
from installers.windows.folders import Folders
from installers.windows.machine import Declined, Machine
from installers.windows.report import Report
from installers.windows.stamps import Stamps

INSIDE = f"{PLACE}/setup"
"""Where the setup's files are in the distribution."""
PROVISION_LIMIT_S = 4 * 3600.0
"""Three gigabytes over a slow line."""


class RestartNeeded(Exception):
    """Windows has to be restarted before the setup can go on."""


class WordNeeded(Exception):
    """The person has to agree first.

    Attributes:
        name: What the setup is told when they do.
    """

    def __init__(self, name: str, question: str) -> None:
        super().__init__(question)
        self.name = name


@dataclass(frozen=True, slots=True)
class Distribution:
    """Shoal's own distribution of WSL."""

    folders: Folders
    stamps: Stamps
    beside: Beside
    wsl: Wsl
    machine: Machine
    report: Report
    progress: EngineProgress
    agreed: Collection[str]
    """What the person has agreed to."""

    def prepare_wsl(self) -> Look:
        """Have a WSL that works, or that only an import can show not to.

        Raises:
            WordNeeded: It has to be turned on.
            RestartNeeded: It has been.
            SetupFailed: It cannot be.
        """
        look = self.wsl.look()
        self.report.note(f"WSL: trouble {look.trouble}, distribution of version {look.version}")
        if look.trouble is Trouble.NEEDS_RESTART:
            raise RestartNeeded
        if look.trouble is Trouble.ABSENT:
            self._turn_on()
        elif look.trouble not in (None, Trouble.VERSION_1):
            raise SetupFailed(sentence(look.trouble))
        return look

    def _turn_on(self) -> None:
        if self.stamps.get("wsl") == "turned on" and self.machine.is_restart_pending():
            raise RestartNeeded
        if not self.machine.can_virtualise():
            raise SetupFailed(sentence(Trouble.NO_VIRTUALISATION))
        if "enable-wsl" not in self.agreed:
            raise WordNeeded(
                "enable-wsl",
                "Shoal's engine runs in the Windows Subsystem for Linux, a part of Windows that is not "
                "turned on here. Turn it on? Windows asks for an administrator's rights for this one "
                "step, and has to be restarted afterwards.",
            )
        self.report.progress(0.0, "Turning on the Windows Subsystem for Linux")
        self._as_administrator(self.wsl.install())
        self.stamps.put("wsl", "turned on")
        # Some Windows 11 need no restart; only the features themselves know.
        if self.wsl.look().trouble in (Trouble.ABSENT, Trouble.NEEDS_RESTART):
            raise RestartNeeded

    def _as_administrator(self, command: tuple[str, ...]) -> None:
        try:
            code = self.machine.run_as_administrator(command)
        except (Declined, OSError) as error:
            raise SetupFailed(
                "The Windows Subsystem for Linux was not turned on, because Windows was not allowed to; "
                "start the setup again when somebody with an administrator's rights is there."
            ) from error
        self.report.note(f"{command[0]} {' '.join(command[1:])}: exit code {code}")

    def have_linux(self, version: int | None) -> None:
        """Have the distribution in WSL 2, whole.

        Args:
            version: Under which version of WSL there is one; None without one.

        Raises:
            SetupFailed: It cannot be had.
        """
        stamp = self.stamps.get("linux")
        if version is not None and stamp is None:
            raise SetupFailed(sentence(Trouble.NAME_TAKEN))
        if version is not None and stamp == "imported":
            if version == 1:
                self.report.progress(0.0, "Changing Shoal's Linux to WSL 2")
                self._obeyed(self.wsl.to_version_2)
            return
        source = _source(self.folders.setup / "root-file-system.json")
        archive = self.folders.downloads / "root-file-system.tar.gz"
        fetch(source, archive, "Shoal's Linux", self.report.progress)
        self.report.progress(1.0, "Importing Shoal's Linux into WSL")
        self.stamps.put("linux", "importing")
        self.beside.forget_engines()
        if version is not None:  # an import that was cut off
            self._obeyed(self.wsl.unregister)
        shutil.rmtree(self.folders.disk, ignore_errors=True)
        self.folders.disk.mkdir(parents=True)
        self._obeyed(lambda: self.wsl.import_from(archive, self.folders.disk))
        self.stamps.put("linux", "imported")
        archive.unlink()

    def _obeyed(self, order) -> None:  # type: ignore[no-untyped-def]
        try:
            order()
        except WslFailed as error:
            if error.trouble is not Trouble.KERNEL_MISSING or "enable-wsl" not in self.agreed:
                raise SetupFailed(str(error)) from error
            self._as_administrator(self.wsl.update())
            try:
                order()
            except WslFailed as again:
                raise SetupFailed(str(again)) from again

    def have_engine(self, fingerprint: str) -> None:
        """Have the engine in the distribution.

        Args:
            fingerprint: Of all that is to be installed; nothing is done when it is there already.

        Raises:
            SetupFailed: It cannot be installed.
        """
        done = self.beside.stamps.get("engine")
        if done == fingerprint:
            return
        self.beside.change("engine")
        self.report.progress(0.0, "Setting Shoal's Linux up")
        parcel = self.folders.downloads / "setup.tar"
        with tarfile.open(parcel, "w") as archive:
            archive.add(self.folders.linux, ".")
            for part in (
                *self.folders.setup.glob("shoal-*.whl"),
                self.folders.setup / "installers",
            ):
                archive.add(part, part.name)
        # What an older version left there would be taken for this one.
        unpack = f"rm -rf {INSIDE} && mkdir -p {INSIDE} && tar -xf - -C {INSIDE}"
        self._inside("sh", "-c", unpack, user="root", input_file=parcel)
        parcel.unlink()
        self._inside("sh", f"{INSIDE}/prepare.sh", user="root")
        self.wsl.terminate()  # the user and the isolation that prepare.sh wrote count from the next start
        self.report.progress(0.05, "Installing the engine")
        again = () if done is None else ("--repair",)
        self._inside("sh", f"{INSIDE}/provision.sh", *again, limit_s=PROVISION_LIMIT_S)
        self.beside.stamps.put("engine", fingerprint)

    def _inside(self, *command: str, user: str = "shoal", **more) -> None:  # type: ignore[no-untyped-def]
        answer = self.wsl.run(*command, user=user, **more)
        if answer.code == 0:
            return
        trouble = answer.trouble
        if trouble not in (None, Trouble.UNKNOWN):
            raise SetupFailed(sentence(trouble))
        if self.progress.problem:
            raise SetupFailed(self.progress.problem)
        told = [line for line in answer.text.splitlines() if line.strip()]
        last = told[-1].strip().removeprefix("error: ")[:300] if told else "it gave no reason"
        raise SetupFailed(
            f"Shoal's engine could not be installed ({last.rstrip('.')}); check the internet connection "
            f"and start the setup again: what was fetched is kept. Details are in {self.report.log}."
        )

    def remove_engine(self, version: str) -> bool:
        """Remove the engine of a version that is no longer needed; returns whether it is gone."""
        answer = self.wsl.run("rm", "-rf", place_of(version))
        if answer.code != 0:
            self.report.note(f"{place_of(version)} stays: exit code {answer.code}: {answer.text}")
        return answer.code == 0

    def remove(self) -> None:
        """Remove the distribution, if it is ours.

        Raises:
            SetupFailed: It is still there.
        """
        if self.stamps.get("linux") is None:
            return
        self._obeyed(self.wsl.unregister)
        self.stamps.put("linux", None)
        shutil.rmtree(self.folders.disk, ignore_errors=True)


def _source(file: Path) -> Source:
    told = json.loads(file.read_text(encoding="utf-8"))
    return Source(tuple(told["urls"]), told["sha256"], told["size_bytes"])
