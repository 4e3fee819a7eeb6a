"""Which build of PyTorch suits this machine: the one for CUDA, or the much smaller one for CPUs."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's own index of CPU builds: on Linux, PyPI has the CUDA build only."""

# What the CUDA build of torch 2.13.0 on PyPI was compiled for.
NEEDED_CUDA = (13, 0)
NEEDED_DRIVER = "580"
NEEDED_CAPABILITY = (7, 5)

_COMPUTE_CAPABILITY_MAJOR, _COMPUTE_CAPABILITY_MINOR = 75, 76  # CUdevice_attribute
_WSL_DRIVER = "/usr/lib/wsl/lib/libcuda.so.1"


@dataclass(frozen=True, slots=True)
class Driver:
    """What the NVIDIA driver says of itself."""

    cuda: tuple[int, int]
    """Newest CUDA version that it can run."""
    capabilities: tuple[tuple[int, int], ...]
    """Compute capability of each card."""


Case = Literal["card", "no_card", "no_driver", "old_driver", "old_card"]


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """The decision, and the sentence that tells it."""

    kind: Literal["cpu", "cuda"]
    reason: str
    case: Case = "no_card"
    """The reason for programs that say it in another language."""


def choose(driver: Driver | None, *, has_card: bool) -> TorchBuild:
    """Decide from what was found.

    Args:
        driver: None when there is no working NVIDIA driver.
        has_card: Whether an NVIDIA card is plugged in, driver or not.
    """
    if driver is None or not driver.capabilities:
        if has_card:
            return TorchBuild(
                "cpu",
                "There is an NVIDIA card here but no working driver, so PyTorch for CPUs is used; "
                f"install driver {NEEDED_DRIVER} or newer and start again to use the card.",
                "no_driver",
            )
        return TorchBuild("cpu", "No NVIDIA card was found, so PyTorch for CPUs is used.")
    if driver.cuda < NEEDED_CUDA:
        return TorchBuild(
            "cpu",
            f"The NVIDIA driver is too old (it runs CUDA {_dotted(driver.cuda)}, "
            f"{_dotted(NEEDED_CUDA)} is needed), so PyTorch for CPUs is used; install driver "
            f"{NEEDED_DRIVER} or newer and start again to use the card.",
            "old_driver",
        )
    if max(driver.capabilities) < NEEDED_CAPABILITY:
        return TorchBuild(
            "cpu",
            f"The NVIDIA card is too old (compute capability {_dotted(max(driver.capabilities))}, "
            f"{_dotted(NEEDED_CAPABILITY)} is needed), so PyTorch for CPUs is used.",
            "old_card",
        )
    return TorchBuild("cuda", "An NVIDIA card was found, so PyTorch for CUDA is used.", "card")


def for_this_machine() -> TorchBuild:
    """Look, then decide. Milliseconds without a card, about a second with one."""
    if sys.platform != "linux":
        return TorchBuild("cpu", "PyTorch's default build for this system is used.")
    return choose(find_driver(), has_card=has_nvidia_card())


def find_driver() -> Driver | None:
    """Ask libcuda (on Windows nvcuda), which every working driver brings; None without one."""
    cuda = None
    for name in ("libcuda.so.1", _WSL_DRIVER, "nvcuda.dll"):
        with contextlib.suppress(OSError):
            cuda = ctypes.CDLL(name)
            break
    if cuda is None or cuda.cuInit(0) != 0:
        return None
    version, count = ctypes.c_int(), ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(version)) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return None
    capabilities = []
    for device in range(count.value):
        major, minor = ctypes.c_int(), ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(major), _COMPUTE_CAPABILITY_MAJOR, device)
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), _COMPUTE_CAPABILITY_MINOR, device)
        capabilities.append((major.value, minor.value))
    return Driver((version.value // 1000, version.value % 1000 // 10), tuple(capabilities))


def has_nvidia_card(devices: Path = Path("/sys/bus/pci/devices")) -> bool:
    """Whether a display controller of NVIDIA is on the PCI bus."""
    for device in devices.glob("*"):
        with contextlib.suppress(OSError):  # a device can be unplugged while we read
            vendor = (device / "vendor").read_text(encoding="ascii").strip()
            device_class = (device / "class").read_text(encoding="ascii").strip()
            if vendor == "0x10de" and device_class.startswith("0x03"):
                return True
    return False


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
