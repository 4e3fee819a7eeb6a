"""The virtual environment in the checkout: made once, repaired when needed, left alone otherwise."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from installers.setup_steps import pip_runs, system_packages
from installers.setup_steps.report import Report, SetupFailed
from installers.setup_steps.state_files import alone, read_json, write_json
from installers.setup_steps.torch_build import TorchBuild
from installers.setup_steps.torch_install import install_for_cpus

NEEDED_BYTES = {"cpu": 3 << 30, "cuda": 11 << 30}
"""Installed size and what pip needs on the way, measured for CPUs, estimated for CUDA."""
_BUILD_TOOLS = ("pip", "setuptools")


@dataclass(frozen=True, slots=True)
class Environment:
    """`.venv` of a checkout.

    `origin.json` in it is written when the environment itself is complete, `setup.json` when
    everything is installed: whatever is interrupted before that is done again.
    """

    root: Path
    """The checkout."""
    report: Report

    @property
    def path(self) -> Path:
        """The environment's folder."""
        return self.root / ".venv"

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.path / "bin"

    @property
    def log(self) -> Path:
        """Everything that pip had to say."""
        return self.path / "setup.log"

    def prepare(self, extras: frozenset[str], torch_build: TorchBuild) -> None:
        """Have everything installed that `extras` ask for; fast when it already is.

        Raises:
            SetupFailed: Something is missing and could not be installed.
        """
        if self._is_ready(extras, torch_build):
            return
        started_s = time.monotonic()
        try:
            with alone(self.root, self.report):
                if not self._is_ready(extras, torch_build):  # another setup may just have ended
                    self._install(extras, torch_build)
        except OSError as error:
            raise SetupFailed(
                f"Setup could not write to {self.path} ({error.strerror}); free some space or "
                "move Shoal to a folder of yours, then run the same command again."
            ) from error
        self.report.say(f"Set up in {time.monotonic() - started_s:.0f} s.")

    def _is_ready(self, extras: frozenset[str], torch_build: TorchBuild) -> bool:
        done = read_json(self.path / "setup.json")
        return (
            self._is_intact()
            and done.get("fingerprint") == self._fingerprint()
            # The CUDA build runs without a card too, and a driver may be away for a day only.
            and done.get("torch") in (torch_build.kind, "cuda")
            and extras <= _extras(done)
        )

    def _install(self, extras: frozenset[str], torch_build: TorchBuild) -> None:
        done = read_json(self.path / "setup.json")
        if not self._is_intact():
            self.report.say(f"Setting Shoal up in {self.path}; this is needed once.")
            self._require_room(torch_build)
            self._create()
            done = {}
        else:
            self.report.say(f"Bringing {self.path} up to date.")
        if done:  # what is interrupted now is not done, but what was chosen stays known
            write_json(self.path / "setup.json", {**done, "fingerprint": ""})
        if done.get("torch") == "cuda":
            torch_build = TorchBuild("cuda", "PyTorch for CUDA is installed already.")
        self.report.say(torch_build.reason)
        remove_unfinished(self._site_packages())
        extras = extras | _extras(done)
        if done and done.get("torch") != torch_build.kind:
            self._pip("replace PyTorch", "uninstall", "-y", "torch")
        constraints = self.root / "resources" / "constraints.txt"
        pins = _pins(constraints)
        tools = [f"{name}=={pins[name]}" for name in _BUILD_TOOLS if name in pins]
        if tools:  # an old pip neither resumes downloads nor reports their progress
            self._pip("update pip", "install", "--no-user", *tools)
        lock = self.root / "installers" / "locks" / "torch-cpu.txt"
        if torch_build.kind == "cpu" and sys.platform == "linux" and lock.exists():
            install_for_cpus(self.bin / "python", lock, self._pip, self.report)
        self.report.say("Installing Shoal and what it needs …")
        self._pip(
            "install Shoal",
            *("install", "--progress-bar=raw", "--resume-retries=10", "--no-user"),
            *("--constraint", str(constraints), "--build-constraint", str(constraints)),
            *("--editable", f"{self.root}[{','.join(sorted(extras))}]"),
        )
        shutil.rmtree(self.path / "tmp", ignore_errors=True)
        write_json(
            self.path / "setup.json",
            {
                "fingerprint": self._fingerprint(),
                "torch": torch_build.kind,
                "extras": sorted(extras),
            },
        )

    def _pip(self, purpose: str, *arguments: str) -> None:
        pip_runs.run_pip(
            self.bin / "python", arguments, purpose=purpose, log=self.log, report=self.report
        )

    def _create(self) -> None:
        system_packages.require_venv(self.report)
        made = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", self.path],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            lines = (made.stderr or made.stdout).strip().splitlines() or ["no reason given"]
            raise SetupFailed(
                f"The virtual environment {self.path} could not be made: {lines[-1]}; move Shoal "
                "to a folder of yours with room on its disk, then run the same command again."
            )
        write_json(self.path / "origin.json", self._origin())

    def _is_intact(self) -> bool:
        """Made completely, here, by this Python: scripts in it hold absolute paths."""
        return (
            read_json(self.path / "origin.json") == self._origin()
            and (self.bin / "python").exists()
        )

    def _origin(self) -> dict[str, object]:
        return {"path": str(self.path), "python": _python_version()}

    def _site_packages(self) -> Path:
        return self.path / "lib" / f"python{_python_version()}" / "site-packages"

    def _fingerprint(self) -> str:
        """Of everything that decides what pip installs."""
        with (self.root / "pyproject.toml").open("rb") as file:
            settings = tomllib.load(file)
        parts = [settings.get("project"), settings.get("build-system")]
        parts.append(settings.get("tool", {}).get("setuptools"))
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
        digest.update((self.root / "resources" / "constraints.txt").read_bytes())
        return digest.hexdigest()

    def _require_room(self, torch_build: TorchBuild) -> None:
        needed, free = NEEDED_BYTES[torch_build.kind], shutil.disk_usage(self.root).free
        if free < needed:
            raise SetupFailed(
                f"Setup needs about {needed >> 30} GB of disk, but {self.root} has only "
                f"{free / (1 << 30):.1f} GB left; free some space or move Shoal to a larger disk."
            )


def remove_unfinished(site_packages: Path) -> None:
    """Make pip forget packages whose installation was cut off, so that it installs them again.

    pip counts a package as installed once its metadata is there, which may be long before its last
    file; it adds itself as the installer to the list of files at the very end.
    """
    for metadata in site_packages.glob("*.dist-info"):
        record = metadata / "RECORD"
        if not record.exists() or f"{metadata.name}/INSTALLER," not in record.read_text("utf-8"):
            shutil.rmtree(metadata)
    for leftover in site_packages.glob("~*"):  # pip's name for what it was about to remove
        shutil.rmtree(leftover)


def _python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _pins(constraints: Path) -> dict[str, str]:
    lines = (line.partition("#")[0].strip() for line in constraints.read_text("utf-8").splitlines())
    return {line.partition("==")[0]: line.partition("==")[2].strip() for line in lines if line}


def _extras(done: dict[str, object]) -> frozenset[str]:
    extras = done.get("extras")
    return frozenset(map(str, extras)) if isinstance(extras, list) else frozenset()
