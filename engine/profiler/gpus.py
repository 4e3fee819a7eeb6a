"""NVIDIA GPUs as their driver sees them, through NVML: no CUDA context, so no memory is taken.

Without a driver there are none; that is no error.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pynvml

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU now."""

    name: str
    uuid: str
    driver: str
    memory_total_bytes: int
    memory_free_bytes: int
    power_limit_w: float | None
    """None where the GPU does not say, as with the next three."""
    power_w: float | None
    temperature_c: float | None
    busy_share: float | None
    """Of the last fraction of a second, some kernel ran."""


def gpus() -> tuple[Gpu, ...]:
    """All GPUs of this machine, in the driver's order; blocks for milliseconds."""
    with _driver() as version:
        if version is None:
            return ()
        count = _told(pynvml.nvmlDeviceGetCount) or 0
        found = [_told(partial(_gpu, index, version)) for index in range(count)]
        return tuple(gpu for gpu in found if gpu is not None)


def gpu_of(uuid: str) -> Gpu | None:
    """One GPU by its UUID, with or without the `GPU-` in front."""
    return next((gpu for gpu in gpus() if gpu.uuid.removeprefix("GPU-") == bare(uuid)), None)


def bare(uuid: str) -> str:
    """The UUID as CUDA writes it."""
    return uuid.removeprefix("GPU-")


def _gpu(index: int, driver: str) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    limit_mw = _told(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    power_mw = _told(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    utilization = _told(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
    sensor = pynvml.NVML_TEMPERATURE_GPU
    temperature = _told(lambda: pynvml.nvmlDeviceGetTemperature(handle, sensor))
    return Gpu(
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        driver=driver,
        memory_total_bytes=int(memory.total),
        memory_free_bytes=int(memory.free),
        power_limit_w=None if limit_mw is None else limit_mw / 1000,
        power_w=None if power_mw is None else power_mw / 1000,
        temperature_c=None if temperature is None else float(temperature),
        busy_share=None if utilization is None else utilization.gpu / 100,
    )


@contextlib.contextmanager
def _driver() -> Iterator[str | None]:
    """The driver's version while it can be asked; None when there is none."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        _logger.debug("no NVIDIA driver answers: %s", error)
        yield None
        return
    try:
        yield _text(pynvml.nvmlSystemGetDriverVersion())
    finally:
        pynvml.nvmlShutdown()


def _told(ask: Callable[[], _T]) -> _T | None:
    """What the driver answers; None where this GPU cannot say."""
    try:
        return ask()
    except pynvml.NVMLError as error:
        _logger.debug("the driver does not say: %s", error)
        return None


def _text(value: Any) -> str:
    """Some versions of NVML's bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
