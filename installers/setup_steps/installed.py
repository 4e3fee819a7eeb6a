"""The engine's environment of an installed Shoal: made in a person's own folder on the first start.

An installer carries uv, the lists with hashes and Shoal's own wheel; Python comes from the system,
or from uv where that has none. Everything that is made lies in one folder, and can go with it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from installers.setup_steps import pip_runs, uv_runs
from installers.setup_steps.report import Report, SetupFailed
from installers.setup_steps.state_files import alone, read_json, write_json
from installers.setup_steps.torch_build import TorchBuild
from installers.setup_steps.torch_install import PIP_INSTALL, install_for_cpus

NEEDED_BYTES = {"cpu": 2_000_000_000, "cuda": 9_000_000_000}
"""Room for what is installed and what lies there on the way: measured for CPUs, estimated for CUDA."""
DOWNLOAD_BYTES = {"cpu": 400_000_000, "cuda": 3_000_000_000}
PYTHONS = ">=3.11,<3.15"
"""The lists hold files for these."""
SYSTEM_PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
"""Asked first: another one on the path may belong to a project that will be gone one day."""
TRIES = 3
_LONGEST_REASON = 200
PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What the installer has brought."""

    folder: Path

    @property
    def uv(self) -> Path:
        """The program that makes environments."""
        return self.folder / "uv"

    @property
    def engine_list(self) -> Path:
        """All packages but PyTorch, with their hashes."""
        return self.folder / "engine.txt"

    @property
    def torch_list(self) -> Path:
        """PyTorch from PyPI with the libraries for its cards, with their hashes."""
        return self.folder / "torch.txt"

    @property
    def cpu_torch_list(self) -> Path:
        """PyTorch for CPUs from PyTorch's own index, with its hashes."""
        return self.folder / "torch-cpu.txt"

    @property
    def wheel(self) -> Path:
        """Shoal itself.

        Raises:
            SetupFailed: There is none, or it is not clear which.
        """
        wheels = sorted(self.folder.glob("shoal-*.whl"))
        if len(wheels) != 1:
            found = ", ".join(wheel.name for wheel in wheels) or "none"
            raise SetupFailed(
                f"Shoal's setup needs exactly one wheel of Shoal in {self.folder}, but found {found}; "
                "install Shoal again."
            )
        return wheels[0]

    def fingerprint(self) -> str:
        """Of everything that decides what gets installed."""
        digest = hashlib.sha256()
        for file in (self.engine_list, self.torch_list, self.cpu_torch_list, self.wheel):
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()


def data_folder(environment: Mapping[str, str], program: Path) -> Path:
    """Where the environment is to be: beside a program that has versions beside it, else at home.

    Args:
        environment: The process's variables. They name the folder of a person's data, which the engine
            finds in the same way, but with the help of libraries.
        program: The folder that Shoal was installed to.
    """
    if (program / "start.json").exists():  # one for each version, so that one can go back
        return program
    if root := environment.get("SHOAL_HOME"):
        return Path(root).expanduser().absolute() / "data"
    base = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "shoal"


@dataclass(frozen=True, slots=True)
class Installed:
    """The environment of one person.

    `setup.json` in it says what it was made from. While something is changed it is not there: what
    is interrupted then is made anew, from what was downloaded already.
    """

    parts: Parts
    data: Path
    report: Report

    @property
    def path(self) -> Path:
        """Everything that setup makes is in here."""
        return self.data / "environment"

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.path / "bin"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.bin / "python"

    @property
    def log(self) -> Path:
        """Everything that uv and pip had to say."""
        return self.path / "setup.log"

    @property
    def cache(self) -> Path:
        """What was downloaded, until all is installed."""
        return self.path / "downloads"

    def is_ready(self, kind: str = "") -> bool:
        """Whether the engine can start.

        Args:
            kind: Of PyTorch, `cpu` or `cuda`, if it matters.
        """
        done = self._done()
        # The CUDA build runs without a card too, and a driver may be away for a day only.
        fits = not kind or done.get("torch") in (kind, "cuda")
        return fits and done.get("fingerprint") == self.parts.fingerprint()

    def prepare(self, torch_build: TorchBuild) -> None:
        """Have everything installed; fast when it already is.

        Raises:
            SetupFailed: Something is missing and could not be installed.
        """
        if self.is_ready(torch_build.kind):
            return
        started_s = time.monotonic()
        try:
            self.data.mkdir(parents=True, exist_ok=True)
            with alone(self.data, self.report):
                if not self.is_ready(torch_build.kind):  # another setup may just have ended
                    self._install(torch_build)
        except OSError as error:
            raise SetupFailed(
                f"Setup could not write to {self.path} ({error.strerror}); free some space or "
                "correct the folder's rights, then start it again."
            ) from error
        self.report.say(f"Set up in {time.monotonic() - started_s:.0f} s.")

    def doubt(self) -> None:
        """See whether the engine starts; one that does not is made anew by `prepare`."""
        try:
            self._try_out()
        except (SetupFailed, OSError):
            (self.path / "setup.json").unlink(missing_ok=True)

    def require_room(self, torch_build: TorchBuild) -> None:
        """See that there is room on the disk.

        Raises:
            SetupFailed: There is not.
        """
        needed, free = NEEDED_BYTES[torch_build.kind], self.free_bytes()
        if free + self._made_bytes() < needed:
            raise SetupFailed(
                f"Setup needs about {needed / 1e9:.0f} GB of disk, but {self.data} has only "
                f"{free / 1e9:.1f} GB left; free some space and start it again."
            )

    def free_bytes(self) -> int:
        """What is left on the disk that the environment will be on."""
        folder = self.data
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def remove(self) -> None:
        """Remove everything that setup has made, and nothing else.

        Raises:
            SetupFailed: Something in there cannot be removed.
        """
        try:
            if self.path.exists():
                shutil.rmtree(self.path)
        except OSError as error:
            raise SetupFailed(
                f"{self.path} cannot be removed ({error.strerror}); remove it by hand."
            ) from error

    def _install(self, torch_build: TorchBuild) -> None:
        done = self._done()
        if done:
            self.report.say(f"Bringing {self.path} up to date.")
        else:
            self.report.say(f"Setting Shoal's engine up in {self.path}; this is needed once.")
            self.require_room(torch_build)
        if done.get("torch") == "cuda":
            torch_build = TorchBuild("cuda", "PyTorch for CUDA is installed already.", "card")
        self.report.say(torch_build.reason)
        self.path.mkdir(exist_ok=True)
        (self.path / "setup.json").unlink(missing_ok=True)
        began_s: dict[str, float] = {}

        def step(name: str) -> None:
            began_s[name] = time.monotonic()
            self.report.step(name)

        if not done:
            step("python")
            done = self._create()
        step("packages")
        self.report.say("Installing what the engine needs …")
        self._uv(
            "install what the engine needs",
            *("pip", "install", "--python", str(self.python), "--no-deps", "--require-hashes"),
            *("--build-constraints", str(self.parts.engine_list)),
            *("--requirement", str(self.parts.engine_list)),
        )
        step("torch")
        self._install_torch(torch_build, replace=done.get("torch") not in (None, torch_build.kind))
        step("shoal")
        self._uv(
            "install Shoal",
            *("pip", "install", "--python", str(self.python), "--no-deps", "--no-index"),
            *("--reinstall-package", "shoal", str(self.parts.wheel)),
        )
        self._try_out()
        for folder in (self.cache, self.path / "tmp"):
            shutil.rmtree(folder, ignore_errors=True)
        made_from: dict[str, object] = {
            "fingerprint": self.parts.fingerprint(),
            "torch": torch_build.kind,
            "python": _version_of(self.python),
            "took_s": _durations(began_s),
        }
        write_json(self.path / "setup.json", made_from)

    def _create(self) -> dict[str, object]:
        """Make it; returns what is known of the packages that are in it from the start."""
        # Of a setup that was cut off, or of another Python, which would not find these packages.
        for folder in (self.bin, self.path / "lib"):
            if folder.exists():
                shutil.rmtree(folder)
        self._uv(
            "make an environment for the engine",
            # What lies beside it (downloads, the log) stays.
            *("venv", "--quiet", "--allow-existing", "--python", _system_python() or PYTHONS),
            str(self.path),
        )
        site_packages = next((self.path / "lib").glob("python3*/site-packages"))
        return self._inherit(site_packages)

    def _inherit(self, site_packages: Path) -> dict[str, object]:
        """Take over the packages of a version beside this one, so that only new ones are fetched.

        Files are shared until one of the two replaces its own, which never writes into the old one.
        """
        if not (self.data / "start.json").exists():
            return {}
        for other in sorted(self.data.parent.glob("*/environment/setup.json")):
            packages = other.parent / site_packages.relative_to(self.path)
            if packages.is_dir() and packages != site_packages:
                self.report.say(f"Taking over what {other.parent.parent.name} has already.")
                shutil.copytree(
                    packages,
                    site_packages,
                    copy_function=os.link,
                    dirs_exist_ok=True,
                    symlinks=True,
                )
                return read_json(other)
        return {}

    def _install_torch(self, torch_build: TorchBuild, *, replace: bool) -> None:
        pins = self.parts.torch_list.read_text("utf-8")
        requirement = next(line for line in pins.splitlines() if line.startswith("torch=="))
        requirement = requirement.rstrip(" \\")
        if replace:
            self._pip("replace PyTorch", "uninstall", "-y", "torch")
        if torch_build.kind == "cpu":
            cpu_list = self.parts.cpu_torch_list
            if install_for_cpus(self.python, cpu_list, self._pip, self.report):
                return
            if pip_runs.has_own_index(self.python):
                # Which build that index has is its business; one for cards brings libraries along.
                self._pip("install PyTorch", *PIP_INSTALL, requirement)
                return
            self.require_room(TorchBuild("cuda", ""))
        self._pip(
            "install PyTorch",
            *(*PIP_INSTALL, "--no-deps", "--require-hashes"),
            *("--requirement", str(self.parts.torch_list)),
        )

    def _try_out(self) -> None:
        """See that the engine's program starts and finds its libraries."""
        tried = subprocess.run(
            [self.python, "-I", "-c", "import torch, hivemind, engine.cli.program"],
            capture_output=True,
            text=True,
            check=False,
        )
        if tried.returncode:
            said = (tried.stderr.strip() or "nothing").splitlines()[-1]
            raise SetupFailed(
                "Everything was installed, but the engine does not start: Python said "
                f"“{said[:_LONGEST_REASON]}”; start it again, and if that does not help, report it."
            )

    def _done(self) -> dict[str, object]:
        """What it was made from; empty when it must be made."""
        # After an upgrade of the system the link leads to a Python that finds none of the packages.
        done = read_json(self.path / "setup.json")
        return done if done and done.get("python") == _version_of(self.python) else {}

    def _made_bytes(self) -> int:
        """What an earlier try has left, which counts towards what is needed."""
        total = 0
        for folder, _, files in os.walk(self.path):
            for name in files:
                file = Path(folder, name)
                if not file.is_symlink():
                    total += file.stat().st_size
        return total

    def _uv(self, purpose: str, *arguments: str) -> None:
        """Run uv; a connection that fails is tried again after a while."""
        for tried in range(1, TRIES + 1):
            try:
                uv_runs.run_uv(
                    self.parts.uv,
                    arguments,
                    purpose=purpose,
                    log=self.log,
                    cache=self.cache,
                    report=self.report,
                )
                return
            except SetupFailed as error:
                if "cannot be reached" not in str(error) or tried == TRIES:
                    raise
                self.report.progress("  the connection is interrupted, trying again soon")
                time.sleep(PAUSE_S)

    def _pip(self, purpose: str, *arguments: str) -> None:
        pip_runs.run_pip(self.python, arguments, purpose=purpose, log=self.log, report=self.report)


def _durations(began_s: Mapping[str, float]) -> dict[str, float]:
    """How long each step took, the last until now."""
    ends_s = [*list(began_s.values())[1:], time.monotonic()]
    return {
        name: round(end_s - start_s, 1)
        for (name, start_s), end_s in zip(began_s.items(), ends_s, strict=True)
    }


def _version_of(python: Path) -> str:
    """Such as `3.11`; empty when the interpreter is not there or does not start."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        asked = subprocess.run(
            [python, "-I", "-c", ask], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""


def _system_python() -> str:
    """An interpreter of the system that is new enough; empty when uv must find or fetch one."""
    ask = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))"
    for python in SYSTEM_PYTHONS:
        if Path(python).exists():
            asked = subprocess.run([python, "-I", "-c", ask], capture_output=True, check=False)
            if asked.returncode == 0:
                return python
    return ""
