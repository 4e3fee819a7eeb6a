"""A program that answers as `wsl.exe` does and writes down how it was called.

    python -m tests.support.windows.wsl_stand_in FOLDER ARGUMENTS…

FOLDER has `state.json`: what kind of Windows this is, and which distributions it has. It gets
`calls.txt`, a line of arguments for each call, and `linux`, what is in Shoal's distribution. What
Windows says is in German, as on many a computer: no caller may depend on words.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

FAILED = 255
NOT_ENABLED = (
    "Diese Anwendung erfordert die optionale Komponente „Windows-Subsystem für Linux“.\n"
    "Fehlercode: Wsl/WSL_E_WSL_OPTIONAL_COMPONENT_REQUIRED"
)
NOT_INSTALLED = "Das Windows-Subsystem für Linux ist nicht installiert. https://aka.ms/wslinstall"
NO_VIRTUALISATION = (
    "WSL2 kann nicht gestartet werden, da die Virtualisierung nicht aktiviert ist.\n"
    "Fehlercode: Wsl/Service/RegisterDistro/CreateVm/HCS/HCS_E_HYPERV_NOT_INSTALLED"
)
NO_KERNEL = "WSL 2 erfordert ein Update der Kernelkomponente: https://aka.ms/wsl2kernel"
NO_DISTRIBUTION = (
    "Es gibt keine Distribution mit dem angegebenen Namen.\n"
    "Fehlercode: Wsl/Service/WSL_E_DISTRO_NOT_FOUND"
)


class Windows:
    """The computer that `folder` describes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.linux = folder / "linux"
        self._file = folder / "state.json"

    @property
    def state(self) -> dict[str, Any]:
        """What there is, also after another process has changed it."""
        plain: dict[str, Any] = {"wsl": "works", "distributions": {}, "output": "utf-8"}
        return plain | (json.loads(self._file.read_text("utf-8")) if self._file.exists() else {})

    def put(self, **state: Any) -> None:
        self._file.write_text(json.dumps(self.state | state), "utf-8")

    def calls(self) -> list[list[str]]:
        file = self.folder / "calls.txt"
        return (
            [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            if file.exists()
            else []
        )

    def said(self) -> list[str]:
        """The calls as a person would type them."""
        return [" ".join(call) for call in self.calls()]


def answer(windows: Windows, arguments: list[str]) -> tuple[int, str]:
    wsl, distributions = windows.state["wsl"], dict(windows.state["distributions"])
    match arguments:
        case ["--install", "--no-distribution"]:
            windows.put(wsl=windows.state.get("after_install", "needs restart"))
            return 0, "Der angeforderte Vorgang wurde erfolgreich abgeschlossen."
        case ["--update"]:
            windows.put(wsl="works")
            return 0, "Der Kernel ist da."
        case _ if wsl in ("absent", "needs restart"):
            return (50, NOT_INSTALLED) if wsl == "absent" else (FAILED, NOT_ENABLED)
        case ["--status"]:
            return 0, "Standardversion: 2"
        case ["--list", "--verbose"]:
            if not distributions:
                return FAILED, "Es sind keine Distributionen installiert."
            lines = ["  NAME            STATE           VERSION"]
            lines += [
                f"* {name:<16}Beendet         {version}" for name, version in distributions.items()
            ]
            return 0, "\n".join(lines)
        case ["--import", name, folder, archive, "--version", version]:
            if name in distributions:
                return FAILED, "Fehlercode: Wsl/ERROR_ALREADY_EXISTS"
            if wsl == "no kernel":
                return FAILED, NO_KERNEL
            if wsl == "no virtualisation":
                return FAILED, NO_VIRTUALISATION
            if wsl == "disk full":
                return FAILED, "Fehlercode: Wsl/Service/RegisterDistro/0x80070070"
            if not tarfile.is_tarfile(archive) or not Path(folder).is_dir():
                return FAILED, "Fehlercode: Wsl/E_INVALIDARG"
            windows.put(distributions={**distributions, name: int(version)})
            (Path(folder) / "ext4.vhdx").write_bytes(b"disk")
            if windows.state.get("cut"):
                windows.put(cut=False)
                sys.stdout.flush()
                os.abort()
            return 0, ""
        case ["--set-version", name, version]:
            windows.put(distributions={**distributions, name: int(version)})
            return 0, ""
        case ["--terminate" | "--unregister" as what, name]:
            if name not in distributions:
                return FAILED, NO_DISTRIBUTION
            if what == "--unregister":
                windows.put(distributions={n: v for n, v in distributions.items() if n != name})
                shutil.rmtree(windows.linux, ignore_errors=True)
            return 0, ""
        case ["--distribution", name, "--user", user, "--cd", "/", "--exec", *command]:
            if name not in distributions:
                return FAILED, NO_DISTRIBUTION
            return inside(windows, user, command)
    return FAILED, "Ungültiges Befehlszeilenargument"


def inside(windows: Windows, user: str, command: list[str]) -> tuple[int, str]:
    """What is run in the distribution: unpacking and packing in earnest, the rest only said."""
    home = windows.linux / "home" / user
    home.mkdir(parents=True, exist_ok=True)
    match command:
        case ["sh", "-c", script]:
            moved = script.replace("/opt/shoal", f"{windows.linux}/opt/shoal")
            given = sys.stdin.buffer.read()
            if limit := windows.state.get("cut_input_bytes"):
                given = given[:limit]
            done = subprocess.run(
                ["sh", "-c", moved],
                cwd=home,
                env={**os.environ, "HOME": str(home)},
                input=given,
                stdout=subprocess.PIPE,
                check=False,
            )
            sys.stdout.buffer.write(done.stdout)
            return done.returncode, ""
        case ["rm", "-rf", place]:
            shutil.rmtree(windows.linux / place.lstrip("/"), ignore_errors=True)
        case ["sh", script, *_] if script.endswith("provision.sh"):
            if not (windows.linux / script.lstrip("/")).exists():
                return 127, f"sh: {script}: not found"
            if reason := windows.state.get("provision_fails"):
                return 1, '{"step": "python"}\n' + json.dumps({"problem": reason})
            handed_on = os.environ.get("WSLENV", "").split(":")
            windows.put(proxy=os.environ["HTTPS_PROXY"] if "HTTPS_PROXY" in handed_on else "")
            store = home / ".local/share/shoal"
            store.mkdir(parents=True, exist_ok=True)
            (wheel,) = (windows.linux / "opt/shoal/setup").glob("shoal-*.whl")
            place = windows.linux / "opt/shoal/versions" / wheel.name.split("-")[1]
            (place / "environment").mkdir(parents=True, exist_ok=True)
            return 0, '{"step": "torch"}\n{"progress": "downloading torch", "share": 0.5}'
        case [program, "settings", "set", _] if program.endswith("/shoal"):
            return int(windows.state.get("settings_fail", 0)), "error: the settings are read-only."
    return 0, ""


def main() -> int:
    windows = Windows(Path(sys.argv[1]))
    with (windows.folder / "calls.txt").open("a", encoding="utf-8") as file:
        file.write(json.dumps(sys.argv[2:]) + "\n")
    code, text = answer(windows, sys.argv[2:])
    if text:
        is_old = windows.state["output"] == "utf-16" or os.environ.get("WSL_UTF8") != "1"
        sys.stdout.buffer.write((text + "\r\n").encode("utf-16-le" if is_old else "utf-8"))
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
