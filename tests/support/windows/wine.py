"""Windows programs run by Wine, in a prefix of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 180
_SERVERS = ("/usr/lib/wine/wineserver64", "/usr/lib/wine/wineserver")


def what_is_missing() -> str:
    """Why nothing can be tried under Wine here; empty when it can."""
    missing = [name for name in ("makensis", "wine") if shutil.which(name) is None]
    return f"needs {' and '.join(missing)} (apt-get install nsis wine wine64)" if missing else ""


@dataclass(frozen=True)
class Wine:
    """One prefix: a small Windows."""

    prefix: Path

    @property
    def home(self) -> Path:
        """The folder of the person whom Wine serves."""
        return self.prefix.with_name("home")

    def start(self) -> None:
        """Make it. Its desktop is a link to the one in HOME, which is ours as well."""
        (self.home / "Desktop").mkdir(parents=True)
        self.run("wineboot", "-i")

    def run(self, *command: str) -> int:
        """Run a program to its end, and all that it has started; returns its exit code."""
        done = subprocess.run(
            ["wine", *command],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.settle()
        return done.returncode

    def settle(self) -> None:
        """Wait until nothing runs any more and the registry is on disk."""
        server = next(
            path for path in (*_SERVERS, shutil.which("wineserver") or "") if Path(path).exists()
        )
        subprocess.run([server, "-w"], env=self._environment(), timeout=LIMIT_S, check=True)

    def values(self, key: str) -> dict[str, str]:
        """Texts in a key of the person's registry; empty when there is no such key."""
        text = (self.prefix / "user.reg").read_text("utf-8", "replace")
        sections = text.split("\n[")
        name = key.replace("\\", "\\\\").lower()
        found: dict[str, str] = {}
        for section in sections:
            if section.partition("]")[0].lower() == name:
                for match in re.finditer(r'^"(.*?)"="(.*)"$', section, re.MULTILINE):
                    found[match[1]] = _unescaped(match[2])
        return found

    def path(self, windows_path: str) -> Path:
        """Where this system has a file of Windows' drive C."""
        return self.prefix / "drive_c" / windows_path.removeprefix("C:\\").replace("\\", "/")

    def _environment(self) -> dict[str, str]:
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("DISPLAY", "WAYLAND_DISPLAY")
        }
        return variables | {
            "HOME": str(self.home),
            "WINEPREFIX": str(self.prefix),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d",
            "LC_ALL": "C.UTF-8",
        }


def _unescaped(text: str) -> str:
    text = re.sub(r"\\x([0-9a-f]{1,4})", lambda match: chr(int(match[1], 16)), text)
    return text.replace('\\"', '"').replace("\\\\", "\\")
