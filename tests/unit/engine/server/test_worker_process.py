"""What a worker sees of the machine's GPUs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.config import StageEmulation
from engine.core.errors import WorkerFailed
from engine.core.ids import SessionId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import read_spec
from engine.protocol.frames import Dtype
from engine.protocol.messages import SamplingMessage, SequenceMessage
from engine.protocol.rows import Row, RowFlags
from engine.server.worker_process import LoadOrder, WorkerProcess
from tests.support.tiny_models import save_tiny


@pytest.fixture
def order(tmp_path: Path) -> LoadOrder:
    directory = save_tiny("llama", tmp_path / "model")
    return LoadOrder(
        directory=directory,
        spec=read_spec(directory, "tiny@0"),
        span=Span(0, 1),
        dtype=Dtype.FLOAT32,
        device="cpu",
        threads=1,
        region_bytes=1 << 20,
    )


async def start(order: LoadOrder) -> WorkerProcess:
    return await WorkerProcess.start(
        order, on_progress=lambda done, total: None, on_open_failed=lambda *failed: None
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads the environment of a process")
async def test_a_worker_on_the_processor_sees_no_gpu(order: LoadOrder) -> None:
    worker = await start(order)
    try:
        environment = Path(f"/proc/{worker.pid}/environ").read_bytes().split(b"\0")
        assert b"CUDA_VISIBLE_DEVICES=" in environment
    finally:
        await worker.stop()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU answers here")
async def test_a_gpu_that_is_gone_is_told_and_the_processor_does_not_step_in(
    order: LoadOrder,
) -> None:
    gone = replace(order, device="cuda:0", gpu_uuid="GPU-00000000-0000-0000-0000-000000000000")
    with pytest.raises(WorkerFailed, match=r"The GPU does not answer.*let model\.device be cpu"):
        await start(gone)


async def test_a_stretched_pass_gives_what_it_always_gives_and_takes_its_time(
    order: LoadOrder,
) -> None:
    given = []
    for emulate in (None, StageEmulation(stage_s=0.1, rows=2, computes=True)):
        worker = await start(replace(order, span=Span(0, 4), emulate=emulate))
        try:
            sequence = SequenceMessage(
                session=SessionId(1),
                capacity_tokens=9,
                prompt_tokens=4,
                sampling=SamplingMessage.of(SamplingParams()),
            )
            worker.open(Span(0, 4), [sequence])
            row = Row(SessionId(1), 0, 4, 0, RowFlags.SAMPLE)
            ids = np.array([5, 6, 7, 8], np.int32)
            given.append(await worker.submit([row], ids, [], dtype=Dtype.FLOAT32, width=0))
        finally:
            await worker.stop()
    usual, stretched = given
    assert stretched.sampled == usual.sampled
    assert stretched.compute_s >= 0.2
