"""On a machine with an NVIDIA GPU: what NVML says is what torch says, and measuring uses the GPU."""

import asyncio

import pytest
import torch

from engine.models.known import starter_spec
from engine.profiler.compute import ComputeOrder, measure_compute
from engine.profiler.gpus import bare, gpu_of, gpus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_the_driver_and_torch_describe_the_same_gpus():
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        gpu = gpu_of(str(properties.uuid))
        assert gpu is not None
        assert gpu.name == properties.name
        # The driver keeps some for itself; CUDA does not count that.
        assert 0 <= gpu.memory_total_bytes - properties.total_memory < 0.1 * gpu.memory_total_bytes
        assert 0 < gpu.memory_free_bytes <= gpu.memory_total_bytes
        assert gpu.driver
        assert bare(gpu.uuid) == str(properties.uuid)
    assert len(gpus()) >= torch.cuda.device_count()


def test_blocks_are_measured_on_the_gpu_with_caches_in_both_tiers():
    begun: list[str] = []
    order = ComputeOrder(spec=starter_spec(), device="cuda", dtype="bfloat16", quick=True)
    samples = asyncio.run(measure_compute(order, lambda what, share: None, begun.append))
    assert begun == [str(torch.cuda.get_device_properties(0).uuid)]
    assert {cell.where for cell in samples.cells} == {"device", "ram"}
    assert min(samples.to_device_bytes_per_s) > 1e8
    assert min(samples.to_ram_bytes_per_s) > 1e8
    assert all(time > 0 for cell in samples.cells for time in cell.attention_s)
