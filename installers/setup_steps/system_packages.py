"""Libraries and programs that come from the system, not from pip."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from installers.setup_steps.report import Report, SetupFailed

QT_LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xinerama.so.0": "libxcb-xinerama0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
}
"""Library that Qt's window plug-in loads → its package in Debian and Ubuntu."""

_APT_OPTIONS = (
    "-y",
    "--no-install-recommends",
    "-o", "Acquire::http::Timeout=60",
    "-o", "Acquire::https::Timeout=60",
    "-o", "Acquire::Retries=3",
    "-o", "DPkg::Lock::Timeout=300",
)  # fmt: skip
_APT_LIMIT_S = 1800


def require_venv(report: Report) -> None:
    """See that this Python can make virtual environments; Debian splits that part off.

    Raises:
        SetupFailed: It cannot, and the package could not be installed here.
    """
    if importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if not install([package], "to make a virtual environment", report):
        raise SetupFailed(
            "This Python cannot make virtual environments, because its venv module is missing; "
            f"{how_to_install([package])}, then run the same command again."
        )


def missing_packages(libraries: Mapping[str, str] = QT_LIBRARIES) -> list[str]:
    """Packages of the libraries that cannot be loaded, in the order given."""
    missing = []
    for library, package in libraries.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            missing.append(package)
    return missing


def missing_programs(package_list: Path) -> list[str]:
    """Packages named in a file (one a line, `#` for comments) that dpkg has not installed."""
    if not _has_apt() or not package_list.exists():
        return []
    lines = package_list.read_text(encoding="utf-8").splitlines()
    names = [name for line in lines for name in line.partition("#")[0].split()]
    answer = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names],
        capture_output=True,
        text=True,
        check=False,  # it fails for names that it does not know, and tells about the others
    )
    installed = {
        line.split()[0] for line in answer.stdout.splitlines() if line.endswith(" installed")
    }
    return [name for name in names if name not in installed]


def install(packages: Sequence[str], purpose: str, report: Report) -> bool:
    """Install with apt if we are root on a Debian-like system; False if we are not.

    Raises:
        SetupFailed: apt was asked and failed.
    """
    if os.geteuid() != 0 or not _has_apt():
        return False
    report.say(f"Installing system packages {purpose}: {' '.join(packages)}")
    answer = _apt("install", *_APT_OPTIONS, *packages)
    if answer.returncode:  # most often the lists are missing or out of date
        _apt("update", *_APT_OPTIONS)
        answer = _apt("install", *_APT_OPTIONS, *packages)
    if answer.returncode:
        errors = [line for line in answer.stdout.splitlines() if line.startswith("E:")]
        raise SetupFailed(
            f"apt-get could not install {' '.join(packages)} "
            f"({(errors or ['it gave no reason'])[-1].removeprefix('E:').strip().rstrip('.')}); "
            f"{how_to_install(packages)}, then run the same command again."
        )
    return True


def how_to_install(packages: Sequence[str]) -> str:
    """What to type, as the middle of a sentence."""
    if not _has_apt():
        return f"install what Debian calls {' '.join(packages)} with your system's package manager"
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"install it with `{sudo}apt-get install {' '.join(packages)}`"


def has_display() -> bool:
    """Whether windows can be shown."""
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _has_apt() -> bool:
    return shutil.which("apt-get") is not None


def _apt(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run(
            ["apt-get", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_APT_LIMIT_S,
            check=False,
        )
    return subprocess.CompletedProcess(
        arguments, 1, f"E: it took over {_APT_LIMIT_S // 60} minutes"
    )
