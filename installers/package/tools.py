"""The build's own programs, in environments made from lists of hashes, apart from everything else."""

from __future__ import annotations

import hashlib
import shutil
import sys
import zipfile
from pathlib import Path

from installers.package.plan import Build, BuildFailed

UV_PLATFORMS = {"linux": "manylinux2014_x86_64", "windows": "win_amd64"}
"""Installer's system → the tag of uv's wheel for it."""


def uv(build: Build) -> Path:
    """The uv of this machine, as pinned in `locks/tools.txt`."""
    return uv_program(build, "linux")


def uv_program(build: Build, system: str) -> Path:
    """Fetch uv for the system that an installer is for: `uv` or `uv.exe`, out of its wheel from PyPI.

    Args:
        build: The run.
        system: `linux` or `windows`.

    Raises:
        BuildFailed: It cannot be fetched, or is not the file whose hash is in the list.
    """
    name = "uv.exe" if system == "windows" else "uv"
    pins = pins_of(build.locks / "tools.txt", "uv")
    folder = build.work / "uv" / f"{system}-{_digest(pins)}"
    program = folder / name
    if program.exists():
        return program
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wanted = folder / "uv.txt"
    wanted.write_text(pins, encoding="utf-8")
    build.run(
        *(sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "download"),
        *("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--platform", UV_PLATFORMS[system], "--dest", folder, "--requirement", wanted),
        purpose=f"fetch uv for {system}",
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (member,) = (entry for entry in archive.namelist() if entry.endswith(f"/scripts/{name}"))
        partial = folder / f"{name}.partial"
        partial.write_bytes(archive.read(member))
        for entry in archive.namelist():
            if "/licenses/" in entry:
                (folder / Path(entry).name).write_bytes(archive.read(entry))
    partial.chmod(0o755)
    partial.replace(program)
    return program


def environment(build: Build, name: str, *lists: Path) -> Path:
    """An environment that holds what `lists` name and nothing else; returns its `bin`.

    Args:
        build: The run.
        name: Of its folder in `work`.
        lists: Files of requirements with hashes.

    Raises:
        BuildFailed: Something in the lists cannot be installed.
    """
    path = build.work / name
    done = path / "installed.sha256"
    wanted = _digest("".join(file.read_text("utf-8") for file in lists) + sys.version)
    if not done.exists() or done.read_text("utf-8") != wanted:
        program = uv(build)
        build.run(
            *(program, "venv", "--quiet", "--clear", "--python", sys.executable, path),
            purpose=f"make the environment {name}",
        )
        build.run(
            *(program, "pip", "install", "--quiet", "--require-hashes", "--no-deps"),
            *("--build-constraints", build.locks / "engine.txt"),
            *("--python", path / "bin" / "python"),
            *(word for file in lists for word in ("--requirement", str(file))),
            purpose=f"install the environment {name}",
        )
        done.write_text(wanted, encoding="utf-8")
    return path / "bin"


def pins_of(lock: Path, name: str) -> str:
    """The lines of one package in a list with hashes."""
    lines = lock.read_text("utf-8").splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.startswith(f"{name}==")]
    if len(starts) != 1:
        raise BuildFailed(
            f"{lock} does not name {name} once; make it anew with `installers/build.py lock`."
        )
    rest = lines[starts[0] + 1 :]
    end = next((i for i, line in enumerate(rest) if not line.startswith("    --hash")), len(rest))
    return "".join([lines[starts[0]], *rest[:end]])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
