"""A guest on a GPU: its memory cap holds, and what it must give up is free within seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest
import torch

from engine.profiler.gpus import Gpu, gpu_of, gpus
from tests.support.real_engine import RealEngine, eventually, real_engine

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.end2end,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

FREE_WITHIN_S = 10.0
NOISE_BYTES = 64 << 20
"""What the driver itself may take or give back meanwhile."""
CAP_BYTES = 3 << 30
PROMPT = "The quick brown fox " * 60


@pytest.fixture
def gpu() -> Gpu:
    return gpus()[0]


@pytest.fixture
def engine(gpu: Gpu, tmp_path: Path) -> Iterator[RealEngine]:
    on_it = ["--set", f'model.device="{gpu.uuid}"', "--set", f"limits.gpu_memory_bytes={CAP_BYTES}"]
    with real_engine(tmp_path, "--model", "starter", *on_it) as engine:
        engine.wait_state("idle")
        yield engine


def free_bytes(gpu: Gpu) -> int:
    found = gpu_of(gpu.uuid)
    assert found is not None
    return found.memory_free_bytes


def processes(gpu: Gpu) -> int:
    """How many processes hold something of it; not which, since containers number them anew."""
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        return len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    finally:
        pynvml.nvmlShutdown()


def test_a_cap_of_gpu_memory_is_never_exceeded(gpu: Gpu, engine: RealEngine) -> None:
    engine.api.call("POST", "/shoal/v1/pause", {})
    before = eventually(
        lambda: free_bytes(gpu), lambda _: engine.status()["worker_pid"] is None, FREE_WITHIN_S
    )
    engine.api.call("POST", "/shoal/v1/resume")
    seen = []
    while engine.status()["state"] != "idle":
        seen.append(free_bytes(gpu))
    for number in (1, 4, 16):
        assert engine.complete(PROMPT, max_tokens=32, n=number)["choices"]
        seen.append(free_bytes(gpu))
    assert before - min(seen) <= CAP_BYTES + NOISE_BYTES


def test_a_pause_leaves_nothing_on_the_gpu(gpu: Gpu, engine: RealEngine) -> None:
    engine.complete(PROMPT)
    busy, held = free_bytes(gpu), processes(gpu)
    engine.api.call("POST", "/shoal/v1/pause", {})
    eventually(lambda: processes(gpu), lambda left: left == held - 1, FREE_WITHIN_S)
    assert free_bytes(gpu) - busy > 500 << 20
    engine.api.call("POST", "/shoal/v1/resume")
    engine.wait_state("idle")
    assert engine.complete("Hello")["choices"]


def test_a_gpu_that_is_no_longer_chosen_is_free_even_of_contexts(
    gpu: Gpu, engine: RealEngine
) -> None:
    held = processes(gpu)
    began_s = time.monotonic()
    values = {"model.device": "cpu", "limits.gpu_memory_bytes": None}
    engine.api.call("PATCH", "/shoal/v1/settings", {"values": values}, timeout_s=60)
    eventually(lambda: processes(gpu), lambda left: left == held - 1, FREE_WITHIN_S)
    assert time.monotonic() - began_s < FREE_WITHIN_S
    engine.wait_state("idle")
    assert engine.complete("Hello")["choices"]
    # Neither the agent nor the worker on the processor holds as much as a context there.
    assert processes(gpu) == held - 1
