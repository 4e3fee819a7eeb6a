"""Where the worker computes, in which precision, and how much memory there is for it."""

from __future__ import annotations

import importlib.util
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from engine.config import ModelConfig, StageConfig
from engine.core.errors import ConfigError
from engine.core.model_spec import ModelSpec
from engine.profiler.gpus import gpus
from engine.protocol.frames import ELEMENT_BYTES, Dtype

DTYPES = {"float32": Dtype.FLOAT32, "bfloat16": Dtype.BFLOAT16, "float16": Dtype.FLOAT16}
MEMORY_SHARE = 0.6
"""The most of the free memory that weights and KV may take when the engine chooses its span."""


@dataclass(frozen=True, slots=True)
class Compute:
    """The worker's device."""

    device: str
    dtype_name: Literal["float32", "bfloat16", "float16"]
    memory_bytes: int
    """Free memory there now."""

    @property
    def dtype(self) -> Dtype:
        """Of weights, KV and what goes over the wire."""
        return DTYPES[self.dtype_name]

    def max_blocks(self, spec: ModelSpec, stage: StageConfig) -> int:
        """Blocks whose weights fit beside the KV budget; at least one, which then may not load."""
        room = self.memory_bytes * MEMORY_SHARE - stage.kv_budget_bytes
        fit = max(1, int(room // (spec.block_parameters * ELEMENT_BYTES[self.dtype])))
        return min(fit, stage.max_blocks or fit, spec.num_hidden_layers)

    def has_room(self, spec: ModelSpec, stage: StageConfig, num_blocks: int) -> bool:
        """Whether so many more blocks fit in what is free now, beside those that are served.

        They have KV budgets of their own. RAM for KV is not taken before it is written, so what
        those that are served may still write is not free, though it looks so. Blocks for as long as
        a driver query takes.
        """
        device_bytes = (
            num_blocks * spec.block_parameters * ELEMENT_BYTES[self.dtype] + stage.kv_budget_bytes
        )
        ram_bytes = 2 * stage.kv_ram_budget_bytes
        free_ram_bytes = psutil.virtual_memory().available * MEMORY_SHARE
        if self.device == "cpu":
            return device_bytes + stage.kv_budget_bytes + ram_bytes <= free_ram_bytes
        free_bytes = (_gpu_free_bytes(self.device) or 0) * MEMORY_SHARE
        return device_bytes <= free_bytes and ram_bytes <= free_ram_bytes


def choose(config: ModelConfig) -> Compute:
    """Resolve `auto` and look how much memory is free. Blocks for as long as a driver query takes.

    Raises:
        ConfigError: CUDA was asked for and is not there.
    """
    gpu_bytes = _gpu_free_bytes(config.device) if config.device != "cpu" else None
    if gpu_bytes is None and config.device.startswith("cuda"):
        raise ConfigError(
            "The settings ask for a CUDA GPU, but no NVIDIA driver answers; install the driver "
            "or set device to cpu."
        )
    device = config.device
    if device == "auto":
        device = "cuda" if gpu_bytes is not None and _torch_has_cuda() else "cpu"
    # bf16 matrix products on a CPU without special units are slower than fp32.
    usual: Literal["float32", "bfloat16"] = "float32" if device == "cpu" else "bfloat16"
    dtype = usual if config.dtype == "auto" else config.dtype
    if device == "cpu" or gpu_bytes is None:
        return Compute(device, dtype, psutil.virtual_memory().available)
    return Compute(device, dtype, gpu_bytes)


def _gpu_free_bytes(device: str) -> int | None:
    """Free memory of a GPU (`auto`, `cuda`: the first), asked without creating a CUDA context."""
    number, found = device.partition(":")[2] or "0", gpus()
    if not number.isdecimal() or int(number) >= len(found):
        return None
    return found[int(number)].memory_free_bytes


def _torch_has_cuda() -> bool:
    """Whether torch was built for CUDA: its file of versions says so, and loads nothing."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        return False
    return runpy.run_path(str(Path(torch.origin).with_name("version.py"))).get("cuda") is not None
