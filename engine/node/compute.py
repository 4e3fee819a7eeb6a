"""Where the worker computes, in which precision, and how much memory there is for it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from engine.config import LimitsConfig, ModelConfig, StageConfig
from engine.core.errors import ConfigError
from engine.core.model_spec import ModelSpec
from engine.core.sentences import Sentence
from engine.node.caps import GPU_BASE_BYTES, RAM_BASE_BYTES, room_bytes
from engine.probes.gpu import GpuProbe
from engine.profiler.gpus import Gpu, bare, gpus
from engine.protocol.frames import ELEMENT_BYTES, Dtype
from engine.server.worker_process import worker_pids

DTYPES = {"float32": Dtype.FLOAT32, "bfloat16": Dtype.BFLOAT16, "float16": Dtype.FLOAT16}
MEMORY_SHARE = 0.6
"""The most of the free memory that weights and KV may take when the engine chooses its span."""

_NO_LIMITS = LimitsConfig()


@dataclass(frozen=True, slots=True)
class Compute:
    """The worker's device."""

    device: str
    dtype_name: Literal["float32", "bfloat16", "float16"]
    memory_bytes: int
    """Memory there for us: what is free now, and what our own workers hold."""
    gpu_uuid: str | None = None
    """Which GPU it is; None: a CPU, or a part of a GPU."""
    room_bytes: int | None = None
    """What the person's cap leaves there for blocks and caches; None without a cap."""

    @property
    def dtype(self) -> Dtype:
        """Of weights, KV and what goes over the wire."""
        return DTYPES[self.dtype_name]

    def max_blocks(self, spec: ModelSpec, stage: StageConfig) -> int:
        """Blocks whose weights fit beside the KV budget.

        Without a cap of the person's at least one, which then may not load.

        Raises:
            ConfigError: The cap has no room for a single one.
        """
        block_bytes = spec.block_parameters * ELEMENT_BYTES[self.dtype]
        room = self.memory_bytes * MEMORY_SHARE - stage.kv_budget_bytes
        least = 1
        if self.room_bytes is not None:
            in_ram = stage.kv_ram_budget_bytes + stage.kept_budget_bytes
            # The model's ends, which the first and the last stage hold, count as well.
            ends = spec.vocab_size * spec.hidden_size * ELEMENT_BYTES[self.dtype]
            ends *= 1 if spec.tie_word_embeddings else 2
            taken = stage.kv_budget_bytes + ends + (in_ram if self.device == "cpu" else 0)
            room, least = min(room, self.room_bytes - taken), 0
        fit = max(least, int(room // block_bytes))
        if fit == 0:
            raise ConfigError(
                Sentence(
                    "A block of {model} takes {block_mb} MB, but the limits leave {room_mb} MB for "
                    "blocks; allow more memory, or choose a smaller model.",
                    model=spec.name,
                    block_mb=round(block_bytes / 1e6),
                    room_mb=round(max(0, room) / 1e6),
                )
            )
        return min(fit, stage.max_blocks or fit, spec.num_hidden_layers)

    def has_room(self, spec: ModelSpec, stage: StageConfig, num_blocks: int) -> bool:
        """Whether so many more blocks fit in what is free now, beside those that are served.

        They have KV budgets of their own. RAM for KV is not taken before it is written, so what
        those that are served may still write is not free, though it looks so. Blocks for as long as
        a driver query takes.
        """
        if self.room_bytes is not None:
            return False  # the cap is for both together, and is used up
        device_bytes = (
            num_blocks * spec.block_parameters * ELEMENT_BYTES[self.dtype] + stage.kv_budget_bytes
        )
        ram_bytes = 2 * stage.kv_ram_budget_bytes
        free_ram_bytes = psutil.virtual_memory().available * MEMORY_SHARE
        if self.device == "cpu":
            return device_bytes + stage.kv_budget_bytes + ram_bytes <= free_ram_bytes
        gpu = _gpu_at(self.device)
        free_bytes = 0 if gpu is None else gpu[1].memory_free_bytes * MEMORY_SHARE
        return device_bytes <= free_bytes and ram_bytes <= free_ram_bytes


def choose(config: ModelConfig, limits: LimitsConfig = _NO_LIMITS) -> Compute:
    """Resolve `auto` and look how much memory there is. Blocks for as long as a driver query takes.

    What workers of this process hold counts as free: they end before others begin.

    Raises:
        ConfigError: CUDA was asked for and is not there.
    """
    found = None if config.device == "cpu" else _gpu_at(config.device)
    if found is None and config.device not in ("auto", "cpu"):
        raise ConfigError(
            f"The settings ask for the GPU {config.device}, but no NVIDIA driver answers for it; "
            "install the driver, or set model.device to another GPU or to cpu."
        )
    # bf16 matrix products on a CPU without special units are slower than fp32.
    if found is None or (config.device == "auto" and not _torch_has_cuda()):
        dtype = "float32" if config.dtype == "auto" else config.dtype
        room = room_bytes(limits.ram_bytes, RAM_BASE_BYTES)
        memory_bytes = psutil.virtual_memory().available + _held_bytes()
        return Compute("cpu", dtype, memory_bytes, room_bytes=room)
    device, gpu = found
    dtype = "bfloat16" if config.dtype == "auto" else config.dtype
    # In a part of a GPU (MIG) the whole one's processes and memory are not ours to judge by.
    uuid = None if _is_partitioned() else gpu.uuid
    room = room_bytes(limits.gpu_memory_bytes, GPU_BASE_BYTES)
    memory_bytes = gpu.memory_free_bytes + (_held_gpu_bytes(uuid) if uuid else 0)
    return Compute(device, dtype, memory_bytes, uuid, room)


def _held_bytes() -> int:
    """RAM that our workers hold and nobody else could have; files that they map are free anyway."""
    held_bytes = 0
    for pid in worker_pids():
        with contextlib.suppress(psutil.Error):  # it has ended
            memory = psutil.Process(pid).memory_info()
            held_bytes += memory.rss - getattr(memory, "shared", 0)
    return held_bytes


def _held_gpu_bytes(uuid: str) -> int:
    """Memory of a GPU that our processes hold; 0 where its driver knows them by other numbers."""
    probe = GpuProbe(uuid)
    try:
        reading = probe.read(None)
    finally:
        probe.close()
    return 0 if reading is None else reading.ours_bytes or 0


def _gpu_at(device: str) -> tuple[str, Gpu] | None:
    """A GPU (`auto`, `cuda`: the first; `cuda:1`, or a UUID) and torch's name of it."""
    found = _visible()
    if device.startswith("GPU-"):
        for number, gpu in enumerate(found):
            if bare(gpu.uuid) == bare(device):
                return f"cuda:{number}", gpu
        return None
    number = int(device.partition(":")[2] or 0)
    name = "cuda" if device == "auto" else device
    return (name, found[number]) if number < len(found) else None


def _visible() -> tuple[Gpu, ...]:
    """The GPUs that CUDA may use, in the order in which our processes count them."""
    found, named = gpus(), os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None or _is_partitioned():
        return found
    visible: list[Gpu] = []
    for name in filter(None, map(str.strip, named.split(","))):
        is_number = name.isdecimal()
        gpu = next(
            (
                gpu
                for number, gpu in enumerate(found)
                if (number == int(name) if is_number else gpu.uuid.startswith(name))
            ),
            None,
        )
        if gpu is None:
            break  # CUDA looks no further either
        visible.append(gpu)
    return tuple(visible)


def _is_partitioned() -> bool:
    return "MIG-" in os.environ.get("CUDA_VISIBLE_DEVICES", "")


def _torch_has_cuda() -> bool:
    """Whether torch was built for CUDA: its file of versions says so, and loads nothing."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        return False
    return runpy.run_path(str(Path(torch.origin).with_name("version.py"))).get("cuda") is not None
