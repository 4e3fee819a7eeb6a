"""Checks of the machine: Python, torch and GPU, Qt, libp2p's daemon, clock."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine.cli.checks import Check, fail, ok, warn
from engine.cli.start import window_problem
from engine.localapi.running import Home

_PROBE_LIMIT_S: Final = 60.0
_TORCH_PROBE: Final = """\
import json, torch
devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps([torch.__version__, torch.version.cuda, torch.get_num_threads(), devices]))
"""
_LIBRARIES: Final = ("transformers", "hivemind", "aiohttp", "safetensors", "tokenizers", "gguf")
_QT_PACKAGES: Final = (
    "libegl1 libgl1 libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 "
    "libxcb-image0 libxcb-render-util0 libxcb-randr0 libxcb-shape0 libxcb-xinerama0 libxcb-xkb1 "
    "libdbus-1-3 libfontconfig1 libglib2.0-0 libgssapi-krb5-2"
)
_TIME_ERROR: Final = 5
"""What adjtimex(2) returns while the clock is not synchronised."""
_TIMEX_BYTES: Final = 512
"""More than the kernel's structure takes on any machine."""


def python(home: Home) -> Sequence[Check]:
    """The interpreter."""
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return [ok("Python", found)]


def torch_and_gpu(home: Home) -> Sequence[Check]:
    """Torch, the GPU driver, and whether they fit."""
    driver = _nvidia_driver()
    if importlib.util.find_spec("torch") is None:
        return [fail("torch", "not installed", "Install Shoal with `pip install shoal`.")]
    # In a process of its own: a broken CUDA library can take the whole interpreter down.
    status, output = _run([sys.executable, "-c", _TORCH_PROBE])
    if status != 0:
        reason = (output.strip().splitlines() or ["it ended without a word"])[-1]
        return [fail("torch", f"cannot be loaded: {reason}", "Install torch again.")]
    version, cuda, threads, devices = json.loads(output.strip().splitlines()[-1])
    checks = [ok("torch", f"{version}, {threads} threads")]
    if devices:
        checks.append(ok("GPU", f"{', '.join(devices)} (CUDA {cuda}, driver {driver or '?'})"))
    elif driver is None:
        checks.append(
            warn(
                "GPU",
                "none found, so the CPU computes",
                "Nothing, unless there is an NVIDIA GPU: then install its driver.",
            )
        )
    elif cuda is None:
        checks.append(
            warn(
                "GPU",
                f"driver {driver}, but this torch is for CPUs",
                "Install torch for CUDA, so that the GPU is used.",
            )
        )
    else:
        checks.append(
            warn(
                "GPU",
                f"driver {driver} does not work with torch for CUDA {cuda}",
                "Update the NVIDIA driver.",
            )
        )
    return checks


def libraries(home: Home) -> Sequence[Check]:
    """Python packages, by their metadata alone."""
    versions, missing = [], []
    for name in _LIBRARIES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        advice = "Install Shoal with its dependencies: `pip install shoal`."
        return [fail("Packages", f"missing: {', '.join(missing)}", advice)]
    return [ok("Packages", ", ".join(versions))]


def window(home: Home) -> Sequence[Check]:
    """Whether the tray and its windows can be shown."""
    problem = window_problem()
    if problem is None:
        return [ok("Window", "Qt loads and there is a display")]
    advice = "Nothing, if the commands and the API are enough; else mend it"
    if ".so" in problem:
        advice += f"; on Debian and Ubuntu: `apt install {_QT_PACKAGES}`"
    return [warn("Window", problem, advice + ".")]


def libp2p(home: Home) -> Sequence[Check]:
    """The daemon that hivemind brings."""
    spec = importlib.util.find_spec("hivemind")
    if spec is None or not spec.submodule_search_locations:
        return [fail("p2pd", "hivemind is not installed", "Install Shoal's dependencies.")]
    daemon = Path(spec.submodule_search_locations[0]) / "hivemind_cli" / "p2pd"
    if not daemon.is_file():
        return [fail("p2pd", f"{daemon} is missing", "Install hivemind again, from its wheel.")]
    if not os.access(daemon, os.X_OK):
        return [fail("p2pd", f"{daemon} may not be executed", f"Run `chmod +x {daemon}`.")]
    status, output = _run([str(daemon), "--help"])
    if "listen" not in output.lower():
        reason = f"does not run here (status {status})"
        return [fail("p2pd", reason, "Shoal needs Linux on x86-64 or arm64, or macOS.")]
    return [ok("p2pd", str(daemon))]


def clock(home: Home) -> Sequence[Check]:
    """Whether the clock is kept right: records of peers whose clocks differ are refused."""
    synchronised = _is_clock_synchronised()
    if synchronised is None:
        return [
            warn(
                "Clock",
                "cannot tell whether it is synchronised",
                "Peers tolerate 2.5 s: compare it with another clock.",
            )
        ]
    if not synchronised:
        return [
            warn(
                "Clock",
                "not synchronised",
                "Switch time synchronisation on: `timedatectl set-ntp true`.",
            )
        ]
    return [ok("Clock", "synchronised")]


def _is_clock_synchronised() -> bool | None:
    if shutil.which("timedatectl"):
        command = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
        status, output = _run(command)
        if status == 0 and output.strip() in ("yes", "no"):
            return output.strip() == "yes"
    name = ctypes.util.find_library("c") if sys.platform.startswith("linux") else None
    if name is None:
        return None
    # All zeros asks only: nothing is changed and no right is needed.
    state = int(ctypes.CDLL(name).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    return None if state < 0 else state != _TIME_ERROR


def _nvidia_driver() -> str | None:
    if not shutil.which("nvidia-smi"):
        return None
    status, output = _run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    return output.splitlines()[0].strip() if status == 0 and output.strip() else None


def _run(command: Sequence[str]) -> tuple[int, str]:
    """Exit status and output of a program; -1 when it cannot be run or does not end."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PROBE_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, str(error)
    return done.returncode, done.stdout
