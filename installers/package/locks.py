"""The lists of packages with the hash of every file that may be installed: made here, read later.

Versions come from `resources/constraints.txt`; `installers/locks/*.in` names what nothing else does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from installers.package import tools
from installers.package.plan import Build, BuildFailed

OLDEST_PYTHON = "3.11"
_OF_TORCH = re.compile(r"torch==|triton==|cuda-|nvidia-(?!ml-py)")
_COMMAND = "python installers/build.py lock"
_ENGINE_HEADER = """\
# What the engine needs apart from PyTorch, for every system and Python from {python} on.
# Made by `{command}`.
"""
_TORCH_HEADER = """\
# PyTorch as PyPI has it: for CUDA on Linux, for CPUs elsewhere. On Linux without a card that it
# can use, installers take the much smaller build of PyTorch's own index instead.
# Made by `{command}`.
"""


def make(build: Build) -> None:
    """Write `installers/locks/*.txt` anew from what the package index has now.

    Raises:
        BuildFailed: The versions do not fit together, or the index cannot be reached.
    """
    for name in ("gui", "freeze", "manual", "tools"):
        _compile(build, build.locks / f"{name}.txt", build.locks / f"{name}.in")
    everything = build.folder("locks") / "engine.txt"
    _compile(build, everything, build.root / "pyproject.toml", build.locks / "engine.in")
    engine, torch = split(everything.read_text("utf-8"))
    names = {"python": OLDEST_PYTHON, "command": _COMMAND}
    (build.locks / "engine.txt").write_text(_ENGINE_HEADER.format(**names) + engine, "utf-8")
    (build.locks / "torch.txt").write_text(_TORCH_HEADER.format(**names) + torch, "utf-8")


def split(lock: str) -> tuple[str, str]:
    """Divide a list into what every machine gets, and PyTorch with the libraries for its cards."""
    lines = [line for line in lock.splitlines(keepends=True) if not line.startswith("#")]
    packages = re.split(r"(?m)^(?=\S)", "".join(lines))
    torch = [package for package in packages if _OF_TORCH.match(package)]
    rest = [package for package in packages if not _OF_TORCH.match(package)]
    return "".join(rest), "".join(torch)


def _compile(build: Build, lock: Path, *sources: Path) -> None:
    program = _uv(build)
    build.run(
        *(program, "pip", "compile", "--quiet", "--universal", "--python-version", OLDEST_PYTHON),
        *("--generate-hashes", "--no-annotate", "--custom-compile-command", _COMMAND),
        *("--constraint", build.root / "resources" / "constraints.txt"),
        *("--output-file", lock, *sources),
        purpose=f"choose the packages of {lock.name}",
    )


def _uv(build: Build) -> Path:
    """The pinned uv; when there is no list yet that pins it, the one on the path."""
    if (build.locks / "tools.txt").exists():
        return tools.uv(build)
    found = shutil.which("uv")
    if found is None:
        raise BuildFailed("There is no list yet that names uv; install uv and run this again.")
    subprocess.run([found, "--version"], check=True, capture_output=True)
    return Path(found)
