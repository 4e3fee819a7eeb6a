"""What this machine consists of, and what it is doing; a fingerprint of what measurements depend on."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine import __version__
from engine.profiler.gpus import Gpu, gpus

_LOAD_SAMPLE_S = 0.25


@dataclass(frozen=True, slots=True)
class Hardware:
    """The machine, without what changes from minute to minute."""

    cpu_name: str
    cpu_cores: int
    cpu_threads: int
    """Logical processors that we may run on."""
    ram_total_bytes: int
    gpus: tuple[Gpu, ...]
    torch: str
    """Version, with its build."""

    @property
    def fingerprint(self) -> str:
        """Equal as long as measured values hold: hardware, driver, torch and Shoal are the same."""
        parts = (
            __version__,
            self.torch,
            platform.machine(),
            self.cpu_name,
            self.cpu_cores,
            self.cpu_threads,
            self.ram_total_bytes
            >> 28,  # what the kernel keeps for itself differs from start to start
            [(gpu.uuid, gpu.name, gpu.driver, gpu.memory_total_bytes) for gpu in self.gpus],
        )
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def hardware() -> Hardware:
    """Look at the machine; blocks for milliseconds."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = ""
    return Hardware(
        cpu_name=_cpu_name(),
        cpu_cores=psutil.cpu_count(logical=False) or 1,
        cpu_threads=usable_threads(),
        ram_total_bytes=psutil.virtual_memory().total,
        gpus=gpus(),
        torch=torch,
    )


def usable_threads() -> int:
    """Logical processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_frequency_hz() -> float | None:
    """Of the processor now; None where nobody says."""
    frequency = psutil.cpu_freq()
    return frequency.current * 1e6 if frequency is not None and frequency.current else None


def cpu_busy_share() -> float:
    """How busy all processors are, by whomever; takes a quarter of a second."""
    return psutil.cpu_percent(interval=_LOAD_SAMPLE_S) / 100


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model"):
                return value.strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
