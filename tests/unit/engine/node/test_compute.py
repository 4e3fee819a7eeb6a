from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pynvml
import pytest

from engine.config import ModelConfig, StageConfig
from engine.core.errors import ConfigError
from engine.models.known import starter_spec
from engine.node import compute
from engine.profiler.gpus import Gpu

GPUS = tuple(
    Gpu(f"GPU {n}", f"GPU-{n}", "570.1", 24 << 30, (10 + n) << 30, 350.0, 80.0, 50.0, 0.0)
    for n in range(2)
)


def test_without_a_gpu_the_cpu_computes_in_float32(monkeypatch):
    monkeypatch.setattr(compute, "gpus", lambda: ())
    chosen = compute.choose(ModelConfig())
    assert (chosen.device, chosen.dtype_name) == ("cpu", "float32")
    assert chosen.memory_bytes > 0
    with pytest.raises(ConfigError, match="no NVIDIA driver answers"):
        compute.choose(ModelConfig(device="cuda"))


def test_a_gpus_own_memory_counts(monkeypatch):
    monkeypatch.setattr(compute, "gpus", lambda: GPUS)
    chosen = compute.choose(ModelConfig(device="cuda:1"))
    assert (chosen.device, chosen.dtype_name, chosen.memory_bytes) == (
        "cuda:1",
        "bfloat16",
        11 << 30,
    )
    with pytest.raises(ConfigError):
        compute.choose(ModelConfig(device="cuda:2"))


GIB = 1 << 30
BLOCK_PARAMETERS = starter_spec().block_parameters


def stage_with(kv_gib: int, kv_ram_gib: int) -> StageConfig:
    return StageConfig(kv_budget_bytes=kv_gib * GIB, kv_ram_budget_bytes=kv_ram_gib * GIB)


@pytest.mark.parametrize(
    ("stage", "needed_bytes"),
    [
        (stage_with(1, 0), 2 * GIB),
        (stage_with(3, 0), 6 * GIB),
        (stage_with(1, 2), 6 * GIB),
    ],
    ids=["own-kv-and-that-of-the-old-blocks", "more-kv", "kv-in-ram"],
)
def test_blocks_loaded_beside_others_need_room_for_the_kv_of_both(monkeypatch, stage, needed_bytes):
    here = compute.Compute("cpu", "float32", 0)
    needed_bytes += 3 * 4 * BLOCK_PARAMETERS
    for spare_bytes, fits in ((GIB // 100, True), (-GIB // 100, False)):
        available = (needed_bytes + spare_bytes) / compute.MEMORY_SHARE
        memory = SimpleNamespace(available=available)
        monkeypatch.setattr(compute.psutil, "virtual_memory", lambda memory=memory: memory)
        assert here.has_room(starter_spec(), stage, 3) is fits


def test_a_gpu_holds_the_kv_of_the_old_blocks_already_but_ram_does_not(monkeypatch):
    monkeypatch.setattr(compute, "gpus", lambda: GPUS)  # the second one has 11 GiB
    here = compute.Compute("cuda:1", "bfloat16", 0)
    memory = SimpleNamespace(available=20 * GIB)
    monkeypatch.setattr(compute.psutil, "virtual_memory", lambda: memory)
    assert here.has_room(starter_spec(), stage_with(6, 5), 3)
    assert not here.has_room(starter_spec(), stage_with(7, 5), 3)
    assert not here.has_room(starter_spec(), stage_with(6, 7), 3)


def test_a_gpu_is_found_by_its_uuid_among_those_that_may_be_seen(monkeypatch):
    monkeypatch.setattr(compute, "gpus", lambda: GPUS)
    chosen = compute.choose(ModelConfig(device="GPU-1"))
    assert (chosen.device, chosen.gpu_uuid) == ("cuda:1", "GPU-1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    chosen = compute.choose(ModelConfig(device="GPU-1"))
    assert (chosen.device, chosen.gpu_uuid) == ("cuda:0", "GPU-1")
    assert compute.choose(ModelConfig(device="cuda")).gpu_uuid == "GPU-1"
    with pytest.raises(ConfigError, match="GPU-0"):
        compute.choose(ModelConfig(device="GPU-0"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1,GPU-0")
    assert compute.choose(ModelConfig(device="GPU-0")).device == "cuda:1"


def test_choosing_loads_no_torch_even_beside_a_gpu():
    code = (
        "import sys; from engine.config import ModelConfig; from engine.node import compute;"
        "compute.gpus = lambda: [type('Gpu', (), {'memory_free_bytes': 1 << 30, 'uuid': 'GPU-1'})];"
        "print(compute.choose(ModelConfig()).device); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    import torch

    assert done.stdout.strip() == ("cuda" if torch.version.cuda else "cpu")


def test_memory_of_a_gpu_that_our_own_processes_hold_counts(monkeypatch):
    monkeypatch.setattr(compute, "gpus", lambda: GPUS)  # of the first one 10 GiB are free
    held = {os.getpid(): 3 * GIB, 1: 2 * GIB}

    def processes(handle):
        return [SimpleNamespace(pid=pid, usedGpuMemory=held[pid]) for pid in held]

    driver = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(free=10 * GIB),
        "nvmlDeviceGetComputeRunningProcesses": processes,
        "nvmlDeviceGetGraphicsRunningProcesses": lambda handle: [],
        "nvmlDeviceGetProcessUtilization": lambda handle, since_us: [],
        "nvmlDeviceGetTemperature": lambda handle, sensor: 60,
    }
    for name, function in driver.items():
        monkeypatch.setattr(pynvml, name, function)
    assert compute.choose(ModelConfig(device="cuda:0")).memory_bytes == 13 * GIB
