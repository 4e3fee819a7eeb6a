from __future__ import annotations

import subprocess
import sys

import pytest

from engine.config import ModelConfig
from engine.core.errors import ConfigError
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


def test_choosing_loads_no_torch_even_beside_a_gpu():
    code = (
        "import sys; from engine.config import ModelConfig; from engine.node import compute;"
        "compute.gpus = lambda: [type('Gpu', (), {'memory_free_bytes': 1 << 30})];"
        "print(compute.choose(ModelConfig()).device); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    import torch

    assert done.stdout.strip() == ("cuda" if torch.version.cuda else "cpu")
