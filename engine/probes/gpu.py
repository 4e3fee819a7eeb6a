"""Who uses a GPU, by NVML: no CUDA context, so a node that yields takes nothing of it."""

from __future__ import annotations

import contextlib
import logging
import os
from collections import defaultdict
from typing import Any

import psutil
import pynvml

from engine.policy.readings import GpuReading
from engine.profiler.gpus import bare

_logger = logging.getLogger(__name__)


class GpuProbe:
    """One GPU, by its UUID.

    Args:
        uuid: With or without the `GPU-` in front.
    """

    def __init__(self, uuid: str) -> None:
        self._uuid = bare(uuid)
        self._is_open = False
        """NVML is: to open it takes longer than a reading, and holds nothing of the GPU."""
        self._seen_us = 0
        """The newest sample of the last reading; the driver keeps them for some seconds."""

    def read(self, worker_pid: int | None) -> GpuReading | None:
        """The GPU now; None where the driver does not answer.

        Args:
            worker_pid: Our process that computes there, if there is one now.
        """
        try:
            if not self._is_open:
                pynvml.nvmlInit()
                self._is_open = True
            handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{self._uuid}")
            return self._read(handle, worker_pid)
        except pynvml.NVMLError as error:
            _logger.debug("the GPU's driver does not say: %s", error)
            self.close()  # a driver that was replaced must be opened anew
            return None

    def close(self) -> None:
        """Let go of the driver."""
        if self._is_open:
            self._is_open = False
            with contextlib.suppress(pynvml.NVMLError):  # the driver is gone already
                pynvml.nvmlShutdown()

    def _read(self, handle: Any, worker_pid: int | None) -> GpuReading:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        held = _held_bytes(handle)
        ours = frozenset(filter(_is_ours, held))
        # In a container the driver may know us by other numbers, and we would take us for others.
        knows_us = worker_pid is None or worker_pid in ours
        return GpuReading(
            free_bytes=int(memory.free),
            ours_bytes=sum(held[pid] for pid in ours) if knows_us else None,
            others_busy_share=self._others_busy_share(handle, ours) if knows_us else None,
            temperature_c=_temperature_c(handle),
            power_w=_power_w(handle),
        )

    def _others_busy_share(self, handle: Any, ours: frozenset[int]) -> float | None:
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(handle, self._seen_us)
        except pynvml.NVMLError_NotFound:
            return 0.0  # no process has done anything since
        except pynvml.NVMLError:
            return None
        shares: defaultdict[int, list[float]] = defaultdict(list)
        for sample in samples:
            self._seen_us = max(self._seen_us, int(sample.timeStamp))
            if sample.pid not in ours and not _is_ours(sample.pid):
                shares[sample.pid].append(sample.smUtil / 100)
        busy: float = sum(sum(share) / len(share) for share in shares.values())
        return min(1.0, busy)


def _held_bytes(handle: Any) -> dict[int, int]:
    """Memory by process; 0 where the driver does not say how much."""
    held: dict[int, int] = {}
    for ask in (
        pynvml.nvmlDeviceGetComputeRunningProcesses,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        try:
            held |= {int(process.pid): int(process.usedGpuMemory or 0) for process in ask(handle)}
        except pynvml.NVMLError as error:
            _logger.debug("the driver does not list processes: %s", error)
    return held


def _temperature_c(handle: Any) -> float | None:
    try:
        return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))
    except pynvml.NVMLError:
        return None


def _power_w(handle: Any) -> float | None:
    try:
        return float(pynvml.nvmlDeviceGetPowerUsage(handle)) / 1000
    except pynvml.NVMLError:
        return None


def _is_ours(pid: int) -> bool:
    """Whether a process is this one or descends from it."""
    try:
        process = psutil.Process(pid)
        return os.getpid() in (pid, *(parent.pid for parent in process.parents()))
    except psutil.Error:
        return False
