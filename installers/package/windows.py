"""The setup for Windows: an NSIS installer that carries uv, the lists with hashes and Shoal's wheel."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from installers.package import notices, sbom, tools, wheel
from installers.package.plan import Build
from installers.package.run import START

SIGN = "SHOAL_SIGN_COMMAND"
"""Variable with a command that signs the file whose path it gets as its last argument."""


def build(build: Build) -> list[Path]:
    """Build `shoal-VERSION-windows-x86_64-setup.exe`.

    Raises:
        BuildFailed: A part could not be made, or makensis is missing or has something to say.
    """
    folder = build.folder("windows") / "payload"
    shutil.rmtree(folder, ignore_errors=True)
    setup = folder / "setup"
    (setup / "linux").mkdir(parents=True)
    shutil.copy(tools.uv_program(build, "windows"), setup / "uv.exe")
    shutil.copy(tools.uv_program(build, "linux"), setup / "linux" / "uv")
    shutil.copy(build.locks / "gui.txt", setup)
    for name in ("engine.txt", "torch.txt", "torch-cpu.txt"):
        shutil.copy(build.locks / name, setup / "linux")
    shutil.copy(wheel.wheel(build), setup)
    own_program(build.root, setup)
    (folder / "LICENSE").write_bytes((build.root / "LICENSE").read_bytes())
    (folder / "THIRD-PARTY-NOTICES.txt").write_text(notices.notices(build), "utf-8")
    (folder / "sbom.cdx.json").write_text(sbom.sbom(build), "utf-8")
    return [make_setup(build, folder)]


def own_program(root: Path, setup: Path) -> None:
    """Copy what the setup runs on Windows and in Linux, `installers/windows`, to `setup`."""
    source = root / "installers" / "windows"
    target = setup / "installers" / "windows"
    target.mkdir(parents=True)
    for file in sorted(source.glob("*.py")):
        shutil.copy(file, target)
    (setup / "linux").mkdir(exist_ok=True)
    for file in sorted((source / "linux").iterdir()):
        shutil.copy(file, setup / "linux")
    shutil.copy(source / "root-file-system.json", setup)
    shutil.copy(root / START, setup / "start.py")
    steps = setup / "installers" / "setup_steps"
    steps.mkdir()
    for file in sorted((root / "installers" / "setup_steps").glob("*.py")):
        shutil.copy(file, steps)


def make_setup(build: Build, folder: Path) -> Path:
    """Pack `folder` into the installer; returns where it is.

    Raises:
        BuildFailed: makensis is missing or has something to say.
    """
    source = build.root / "installers" / "windows"
    shutil.copy(source / "shoal.ico", folder)
    script = build.folder("windows") / "payload.nsh"
    script.write_text(payload_script(folder), encoding="utf-8")
    target = build.out / f"shoal-{build.version}-windows-x86_64-setup.exe"
    numbers = [*re.findall(r"\d+", build.version), "0", "0", "0", "0"][:4]
    defines = {
        "VERSION": build.version,
        "VERSION4": ".".join(numbers),
        "OUT": str(target),
        "PAYLOAD": str(script),
        "ICON": str(source / "shoal.ico"),
    }
    if build.is_fast:
        defines["FAST"] = "1"
    if command := os.environ.get(SIGN):
        defines["SIGN"] = command
    build.run(
        *("makensis", "-V2", "-WX", "-INPUTCHARSET", "UTF8"),
        *(f"-D{name}={value}" for name, value in defines.items()),
        source / "shoal.nsi",
        purpose="make the setup for Windows",
    )
    return target


def payload_script(folder: Path) -> str:
    """NSIS commands that unpack `folder`: named one by one, because makensis asks the disk for their order."""
    lines = []
    files = [path for path in folder.rglob("*") if path.is_file()]
    before = None
    for path in sorted(files, key=lambda path: (path.parent.as_posix(), path.name)):
        below = "\\".join(path.parent.relative_to(folder).parts)
        if below != before:
            lines.append(f'SetOutPath "$INSTDIR{chr(92) if below else ""}{below}"')
            before = below
        lines.append(f'File "{str(path).replace("$", "$$")}"')
    return "\n".join([*lines, ""])
