"""The native half: the windows' Python environment, made by uv from the list with hashes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.wsl import NO_WINDOW
from installers.setup_steps.report import SetupFailed
from installers.windows.beside import Beside
from installers.windows.report import Report, SetupStopped

_LOOK_EVERY_S = 0.3
_CAUSES = (
    (
        r"No space left|not enough space|os error 112|Disk quota",
        "the disk is full",
        "free some space and start the setup again",
    ),
    (
        r"certificate|invalid peer|UnknownIssuer",
        "the package index could not prove who it is",
        "check this computer's clock and proxy and start the setup again",
    ),
    (
        r"hash mismatch",
        "a package is not the one that this setup was made for",
        "get a newer setup",
    ),
    (
        r"error sending request|dns error|timed out|connection|Connect|network|client error",
        "the package index cannot be reached",
        "check the internet connection, and the proxy if there is one, and start the setup again; what "
        "was fetched is kept",
    ),
    (
        r"Access is denied|os error 5\b|os error 32|being used by another process",
        "a file of Shoal is in use or cannot be written",
        "quit Shoal from its tray icon and start the setup again",
    ),
)


@dataclass(frozen=True, slots=True)
class WindowsApp:
    """The environment that holds tray and windows."""

    beside: Beside
    report: Report
    uv: tuple[str, ...]
    """The program, as a command."""
    variables: Mapping[str, str]
    """For uv: proxies."""

    def have(self, fingerprint: str) -> None:
        """Have it installed.

        Args:
            fingerprint: Of all that is to be installed; nothing is done when it is there already.

        Raises:
            SetupFailed: It cannot be installed.
        """
        if self.beside.stamps.get("app") == fingerprint:
            return
        self.beside.change("app")
        folders, environment = self.beside.folders, str(self.beside.app)
        self.report.progress(0.0, "Making the windows' environment")
        self._uv("venv", "--clear", "--python", sys.executable, environment)
        self.report.progress(0.1, "Installing the windows (about 90 MB)")
        install = ("pip", "install", "--python", environment)
        lock = str(folders.setup / "gui.txt")
        self._uv(*install, "--require-hashes", "--only-binary", ":all:", "--requirement", lock)
        (wheel,) = folders.setup.glob("shoal-*.whl")
        self._uv(*install, "--no-deps", "--no-index", str(wheel))
        self._uv("venv", "--clear", "--python", sys.executable, str(folders.launcher))
        self.beside.stamps.put("app", fingerprint)

    def _uv(self, *arguments: str) -> None:
        command = [*self.uv, "--no-progress", *arguments]
        self.report.note(subprocess.list2cmdline(command))
        output = self.beside.folders.downloads / "uv.log"
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("w+b") as log:
            with subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.variables},
                creationflags=NO_WINDOW if os.name == "nt" else 0,
            ) as process:
                while True:
                    try:
                        process.wait(_LOOK_EVERY_S)
                        break
                    except subprocess.TimeoutExpired:
                        if self.report.is_stop_wanted():
                            process.kill()
                            raise SetupStopped from None
            log.seek(0)
            told = log.read().decode("utf-8", "replace")
        for line in told.splitlines():
            self.report.note(f"  {line}")
        if process.returncode:
            raise SetupFailed(explain(told, self.report.log))


def explain(output: str, log: Path) -> str:
    """Turn uv's output into one sentence: what happened, why, and what to do."""
    for pattern, why, what_to_do in _CAUSES:
        if re.search(pattern, output, re.IGNORECASE):
            return (
                f"Shoal's windows could not be installed, because {why}; {what_to_do}. Details are in "
                f"{log}."
            )
    errors = re.findall(r"^\s*(?:error:|×|Caused by:)\s*(.+?)\.?$", output, re.MULTILINE)
    reason = f"uv said “{errors[-1][:200]}”" if errors else "uv ended without saying why"
    return (
        f"Shoal's windows could not be installed, because {reason}; look into {log} and try again."
    )
