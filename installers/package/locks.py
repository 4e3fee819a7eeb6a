"""The lists of packages with the hash of every file that may be installed: made here, read later.

Versions come from `resources/constraints.txt`; `installers/locks/*.in` names what nothing else does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

from installers.package import tools
from installers.package.plan import Build, BuildFailed
from installers.setup_steps.torch_build import CPU_INDEX

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
_CPU_TORCH_HEADER = """\
# PyTorch for CPUs on Linux, as PyTorch's own index has it.
# Made by `{command}`.
"""
_CPU_WHEEL = re.compile(
    r'href="[^"]*/torch-(?P<version>[\d.]+)(?:%2B|\+)cpu-cp3(?:11|12|13|14)-cp\d+-manylinux\w*_x86_64'
    r'\.whl#sha256=(?P<sha256>[0-9a-f]{64})"'
)
_PAGE_LIMIT_S = 60.0


def make(build: Build) -> None:
    """Write `installers/locks/*.txt` anew from what the package indexes have now.

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
    version = torch.partition("\ntorch==")[2].split()[0]
    if f"torch=={version}+cpu" not in (build.locks / "torch-cpu.txt").read_text("utf-8"):
        (build.locks / "torch-cpu.txt").write_text(
            _CPU_TORCH_HEADER.format(**names) + cpu_torch(_cpu_page(), version), "utf-8"
        )


def cpu_torch(page: str, version: str) -> str:
    """The list of PyTorch for CPUs.

    Args:
        page: What PyTorch's own index says of torch, as PEP 503 has it.
        version: Without its `+cpu`.

    Raises:
        BuildFailed: It names no file of this version with a hash.
    """
    wheels = _CPU_WHEEL.finditer(page)
    hashes = sorted({wheel["sha256"] for wheel in wheels if wheel["version"] == version})
    if not hashes:
        raise BuildFailed(f"{CPU_INDEX} names no hash of torch {version}; look at its page.")
    lines = [f"torch=={version}+cpu", *(f"    --hash=sha256:{one}" for one in hashes)]
    return " \\\n".join(lines) + "\n"


def _cpu_page() -> str:
    url = f"{CPU_INDEX}/torch/"
    try:
        with urllib.request.urlopen(url, timeout=_PAGE_LIMIT_S) as answer:  # noqa: S310 - https
            return str(answer.read().decode("utf-8"))
    except OSError as error:
        raise BuildFailed(
            f"{url} cannot be reached ({error}), so torch-cpu.txt is still that of the version before; "
            "run this again where it can."
        ) from error


def split(lock: str) -> tuple[str, str]:
    """Divide a list into what every machine gets, and PyTorch with the libraries for its cards."""
    lines = [line for line in lock.splitlines(keepends=True) if not line.startswith("#")]
    packages = re.split(r"(?m)^(?=\S)", "".join(lines))
    torch = [package for package in packages if _OF_TORCH.match(package)]
    rest = [package for package in packages if not _OF_TORCH.match(package)]
    return "".join(rest), "".join(torch)


def _compile(build: Build, lock: Path, *sources: Path) -> None:
    build.run(
        _uv(build),
        *("pip", "compile", "--quiet", "--universal", "--python-version", OLDEST_PYTHON),
        *("--generate-hashes", "--no-annotate", "--custom-compile-command", _COMMAND),
        *("--constraint", str(build.root / "resources" / "constraints.txt")),
        *("--output-file", str(lock), *map(str, sources)),
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
