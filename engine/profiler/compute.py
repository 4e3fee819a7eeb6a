"""What computing costs, measured by the real blocks in a process of its own.

The process can be ended at any moment and leaves nothing behind; whoever asks loads no torch. It
takes one `ComputeOrder` as a line on its standard input and prints JSON lines: `{"progress": …}`
and `{"device": …}`, one `{"samples": …}` or `{"error": {"code", "message"}}`; then it returns every
line it gets, so that handing over can be timed, until its input ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from engine.core.errors import WorkerFailed, error_class
from engine.core.model_spec import ModelSpec
from engine.profiler.measuring_process import MeasuringProcess, measuring_process

_ECHOES: Final = 25

Show = Callable[[str, float], None]
"""Told (what is being measured, how much of it is done, 0 to 1)."""


class ComputeOrder(BaseModel):
    """What to measure."""

    model_config = ConfigDict(frozen=True)

    spec: ModelSpec
    """Its blocks are measured, with random weights; nothing of it need be here."""
    device: str
    dtype: Literal["float32", "bfloat16", "float16"]
    threads: int = 0
    """0: torch's own choice."""
    quick: bool = False


class CellSamples(BaseModel):
    """Times of one block with `batch` rows of one token, each with `context` tokens before it."""

    where: Literal["device", "ram"]
    batch: int
    context: int
    mlp_s: list[float]
    attention_s: list[float]


class HeadSamples(BaseModel):
    """Times of norm, LM head and sampling."""

    rows: int
    head_s: list[float]


class ComputeSamples(BaseModel):
    """All that the process has measured."""

    threads: int
    free_bytes: int
    """Where the blocks compute, before anything was loaded."""
    cells: list[CellSamples]
    heads: list[HeadSamples]
    prefill_row_s: list[float]
    fixed_s: list[float]
    """A tiny block: what starting its operations takes."""
    packing_s: list[float]
    """What a pass needs beside its blocks: positions, rotary tables, sorting rows."""
    to_device_bytes_per_s: list[float]
    """Empty without an accelerator, as the next."""
    to_ram_bytes_per_s: list[float]
    encode_bytes_per_s: list[float]
    decode_bytes_per_s: list[float]
    handover_s: list[float] = []
    """There and back between this process and that one; added by the one that asks."""


async def measure_compute(
    order: ComputeOrder, show: Show, on_device: Callable[[str], None] = lambda uuid: None
) -> ComputeSamples:
    """Measure; cancelling ends the process at once.

    Args:
        order: What to measure.
        show: Told how far it is.
        on_device: Told the accelerator's UUID when work on it begins.

    Raises:
        ResourceError: There is too little memory for a single block of the model.
        ModelError: The model's family is not supported.
        WorkerFailed: The process ended unexpectedly.
    """
    async with measuring_process("engine.profiler.compute_process") as process:
        return await _converse(process, order, show, on_device)


async def _converse(
    process: MeasuringProcess,
    order: ComputeOrder,
    show: Show,
    on_device: Callable[[str], None],
) -> ComputeSamples:
    process.say(order.model_dump_json())
    while True:
        message = await process.line()
        if "progress" in message:
            show(str(message["progress"]["what"]), float(message["progress"]["share"]))
        elif "device" in message:
            on_device(str(message["device"]))
        elif "error" in message:
            error = message["error"]
            raise error_class(error["code"], WorkerFailed)(error["message"])
        else:
            samples = ComputeSamples.model_validate(message.get("samples"))
            break
    for _ in range(_ECHOES):
        started_s = time.perf_counter()
        process.say('{"op": "forward", "rows": [[0, 0, 1, 0]], "ids": [0]}')
        await process.line()
        samples.handover_s.append(time.perf_counter() - started_s)
    process.say_no_more()
    return samples
