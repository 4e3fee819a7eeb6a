"""Windows programs run by Wine, in a prefix of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 180
_LOOK_EVERY_S = 0.1
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

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Make it, and end everything in it afterwards; it is there when what is given has ended.

        Its desktop is a link to the one in HOME, which is ours as well. Its server stays between
        programs, because a Windows takes seconds to boot.
        """
        (self.home / "Desktop").mkdir(parents=True)
        self.prefix.mkdir()
        self._server("-p")
        try:
            yield subprocess.Popen(
                ["wine", "wineboot", "-i"],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        finally:
            self._server("-k", "-w")

    def run(self, *command: str) -> int:
        """Run a program to its end; returns its exit code."""
        return subprocess.run(
            ["wine", *command],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            # Not a pipe: what Windows itself starts along the way would keep it open for long.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        ).returncode

    def values(self, key: str) -> dict[str, str]:
        """Texts in a key of the person's registry; empty when there is no such key."""
        file = self.prefix / "drive_c" / "exported.reg"
        file.unlink(missing_ok=True)
        self.run("regedit", "/E", r"C:\exported.reg", rf"HKEY_CURRENT_USER\{key}")
        if not file.exists():
            return {}
        sections = file.read_text("utf-16").split("\n[")
        own = next((one for one in sections if one.partition("]")[0].endswith(key)), "")
        pairs = re.finditer(r'^"(.*?)"="(.*)"$', own, re.MULTILINE)
        return {match[1]: _unescaped(match[2]) for match in pairs}

    def set_values(self, key: str, **values: str) -> None:
        """Set values of the person's registry, as a .reg file writes them."""
        lines = ["REGEDIT4", "", rf"[HKEY_CURRENT_USER\{key}]"]
        lines += [f'"{name}"={value}' for name, value in values.items()]
        file = self.prefix / "drive_c" / "imported.reg"
        file.write_text("\r\n".join([*lines, ""]), "utf-8")
        self.run("regedit", r"C:\imported.reg")

    def path(self, windows_path: str) -> Path:
        """Where this system has a file of Windows' drive C."""
        return self.prefix / "drive_c" / windows_path.removeprefix("C:\\").replace("\\", "/")

    def _server(self, *options: str) -> None:
        found = (path for path in (*_SERVERS, shutil.which("wineserver") or "") if path)
        server = next(path for path in found if Path(path).exists())
        for option in options:
            subprocess.run(
                [server, option],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=LIMIT_S,
                check=True,
            )

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


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what a program does that has gone on in a copy of itself."""
    limit = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(_LOOK_EVERY_S)


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")
