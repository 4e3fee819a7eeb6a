"""What computing costs, measured by the real blocks in a process of its own.

The process can be ended at any moment and leaves nothing behind; whoever asks loads no torch. It
takes one `ComputeOrder` as a line on its standard input and prints JSON lines: `{"progress": …}`
and `{"device": …}`, one `{"samples": …}` or `{"error": {"code", "message"}}`; then it returns every
line it gets, so that handing over can be timed, until its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.core.errors import WorkerFailed, error_class
from engine.core.model_spec import ModelSpec
from engine.models.environment import COMPUTE_ENVIRONMENT

_logger = logging.getLogger(__name__)

_MAX_LINE_BYTES: Final = 4 << 20
_KEPT_LOG_BYTES: Final = 4096
_ECHOES: Final = 25
_SILENCE_LIMIT_S: Final = 120.0
"""Loading libraries from a cold disk takes tens of seconds, and so does a pass of a huge model."""

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
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engine.profiler.compute_process", str(os.getpid())),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MAX_LINE_BYTES,
        # As the worker has it, which these numbers are to describe.
        env={**COMPUTE_ENVIRONMENT, **os.environ}
        | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert child.stderr is not None
    log = asyncio.ensure_future(_drain(child.stderr))
    try:
        samples = await _converse(child, order, show, on_device)
    except (EOFError, ValidationError, OSError) as error:
        await child.wait() if isinstance(error, EOFError) else None
        said = await asyncio.wait_for(log, 1.0) if child.returncode is not None else ""
        _logger.error("the measuring process ended with %s: %s", child.returncode, said)
        raise WorkerFailed(
            f"The process that measures ended unexpectedly (exit code {child.returncode}); "
            "see the log, and run `shoal doctor`."
        ) from error
    except TimeoutError as error:
        raise WorkerFailed(
            f"The process that measures has said nothing for {_SILENCE_LIMIT_S:.0f} s, so it was "
            "ended; run `shoal doctor`."
        ) from error
    finally:
        log.cancel()
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await asyncio.shield(child.wait())
    return samples


async def _converse(
    child: asyncio.subprocess.Process,
    order: ComputeOrder,
    show: Show,
    on_device: Callable[[str], None],
) -> ComputeSamples:
    assert child.stdin is not None
    child.stdin.write(order.model_dump_json().encode() + b"\n")
    while True:
        message = await _line(child)
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
        child.stdin.write(b'{"op": "forward", "rows": [[0, 0, 1, 0]], "ids": [0]}\n')
        await _line(child)
        samples.handover_s.append(time.perf_counter() - started_s)
    child.stdin.close()
    return samples


async def _line(child: asyncio.subprocess.Process) -> dict[str, Any]:
    """The next line of the child's.

    Raises:
        EOFError: It has ended.
        TimeoutError: It hangs.
    """
    assert child.stdout is not None
    async with asyncio.timeout(_SILENCE_LIMIT_S):
        line = await child.stdout.readline()
    if not line:
        raise EOFError
    message = json.loads(line)
    return message if isinstance(message, dict) else {}


async def _drain(stream: asyncio.StreamReader) -> str:
    """Read all, so that the child never blocks; keep the end for the log."""
    kept = b""
    while chunk := await stream.read(65536):
        kept = (kept + chunk)[-_KEPT_LOG_BYTES:]
    return kept.decode(errors="replace").strip()
