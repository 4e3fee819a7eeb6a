"""Measure this machine: every part in turn, then one value.

`cached` says what is known, `current` measures only where that no longer holds, `measure` always
does. None of them loads torch; the blocks run in a process of their own (`profiler.compute`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import psutil

from engine import __version__
from engine.core.clock import Clock, SystemClock
from engine.core.errors import WorkerFailed
from engine.core.model_spec import ModelSpec
from engine.localapi.measurements import (
    CpuFacts,
    DiskFacts,
    GpuFacts,
    Load,
    MeasuredModel,
    MeasuredProfile,
    NetworkMeasurement,
    Quantity,
)
from engine.localapi.running import Home
from engine.profiler import disk
from engine.profiler.block_table import BlockTable, head_time
from engine.profiler.cache import cached, reason_to_measure, save
from engine.profiler.compute import ComputeOrder, ComputeSamples, Show, measure_compute
from engine.profiler.exchange import EXCHANGE_S, ExchangeOrder, FrameCost, measure_exchange
from engine.profiler.fit import exactly, quantity
from engine.profiler.gpus import Gpu, bare, gpu_of
from engine.profiler.hardware import Hardware, cpu_busy_share, cpu_frequency_hz, hardware

_logger = logging.getLogger(__name__)

__all__ = ["Subject", "cached", "current", "measure"]

NO_NETWORK: Final = NetworkMeasurement(note="No line was measured.")
_ELEMENT_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2}
_POWER_EVERY_S: Final = 0.25
_WHOLE_CORE: Final = 1.1
"""A second of processor time takes no longer where a core is there for it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: blocks of these sizes, computed there and so."""

    spec: ModelSpec
    device: str
    dtype: Literal["float32", "bfloat16", "float16"]
    threads: int = 0
    """0: torch's own choice."""


async def measure(
    home: Home,
    subject: Subject,
    show: Show = lambda what, share: None,
    *,
    quick: bool = False,
    network: NetworkMeasurement = NO_NETWORK,
    clock: Clock | None = None,
) -> MeasuredProfile:
    """Measure everything; cancelling ends it at once and leaves nothing behind.

    Args:
        home: Whose disk is measured.
        subject: What shall be computed.
        show: Told what is being measured and how much is done, 0 to 1.
        quick: Under ten seconds instead of under a minute: wider spreads, and nothing of frames.
        network: What a running engine has measured with its peers.
        clock: For the date.

    Raises:
        ResourceError: Too little memory for a single block.
        ModelError: The model's family is not supported.
        WorkerFailed: The measuring process ended unexpectedly.
    """
    took = _Durations()
    show("what else is running", 0.0)
    with took.part("load"):
        machine = await asyncio.to_thread(hardware)
        busy_share = await asyncio.to_thread(cpu_busy_share)
    show("disk", 0.03)
    with took.part("disk"):
        speeds = await asyncio.to_thread(disk.read_speeds, home.models_dir, quick=quick)
        free_bytes = await asyncio.to_thread(disk.free_bytes, home.models_dir)
    with took.part("compute"):
        order = ComputeOrder(
            spec=subject.spec,
            device=subject.device,
            dtype=subject.dtype,
            threads=subject.threads,
            quick=quick,
        )
        accelerator = _Accelerator()
        async with accelerator.watched():
            samples = await measure_compute(
                order, lambda what, share: show(what, 0.08 + 0.8 * share), accelerator.begin
            )
    frames = None
    if not quick:
        show("frames", 0.9)
        with took.part("frames"):
            frames = await _frames(subject)
    table = BlockTable.of(samples)
    on_gpu = subject.device != "cpu"
    packing, handover = quantity(samples.packing_s, "s"), quantity(samples.handover_s, "s")
    profile = MeasuredProfile(
        measured_unix_s=round((clock or SystemClock()).unix_s(), 3),
        shoal=__version__,
        quick=quick,
        fingerprint=machine.fingerprint,
        device=subject.device,
        dtype=subject.dtype,
        threads=samples.threads,
        model=_model(subject),
        block=table.block(samples),
        head=head_time(samples),
        pass_overhead_s=exactly(
            packing.value + handover.value, "s", spread=packing.spread + handover.spread
        ),
        frame=None if frames is None else frames.time,
        frame_shares_cores=frames is None or _shares_cores(frames, subject, samples, machine),
        memory_bytes=exactly(samples.free_bytes, "B"),
        ram_bytes=exactly(psutil.virtual_memory().available if on_gpu else 0, "B"),
        uplink_bytes_per_s=network.uplink_bytes_per_s,
        downlink_bytes_per_s=network.downlink_bytes_per_s,
        encode_bytes_per_s=quantity(samples.encode_bytes_per_s, "B/s"),
        decode_bytes_per_s=quantity(samples.decode_bytes_per_s, "B/s"),
        power_w=accelerator.power_w(),
        prefill_tokens_per_s=quantity([1 / s for s in samples.prefill_row_s], "token/s"),
        to_device_bytes_per_s=_maybe(samples.to_device_bytes_per_s, "B/s"),
        to_ram_bytes_per_s=_maybe(samples.to_ram_bytes_per_s, "B/s"),
        table=table.rows(),
        cpu=_cpu(machine),
        ram_total_bytes=exactly(machine.ram_total_bytes, "B"),
        gpus=tuple(map(_gpu, machine.gpus)),
        disk=DiskFacts(free_bytes=exactly(free_bytes, "B"), read_bytes_per_s=_maybe(speeds, "B/s")),
        network=network,
        load=Load(
            cpu_share=exactly(busy_share, "1"), gpu_share=accelerator.busy_share_before(machine)
        ),
        took_s=took.rounded(),
    )
    show("done", 1.0)
    return profile


async def current(
    home: Home, subject: Subject, show: Show = lambda what, share: None
) -> MeasuredProfile:
    """What is known of this machine; where nothing is or it no longer holds, measured and kept.

    Quickly, and without the network.

    Raises:
        ResourceError: Too little memory for a single block, or nowhere to keep the result.
        ModelError: The model's family is not supported.
        WorkerFailed: The measuring process ended unexpectedly.
    """
    known = await asyncio.to_thread(cached, home)
    if known is not None and not await reason_for(known, subject):
        return known
    profile = await measure(home, subject, show, quick=True)
    await asyncio.to_thread(save, home, profile)
    return profile


async def reason_for(known: MeasuredProfile | None, subject: Subject) -> str:
    """Why to measure again, as a phrase; empty when what is known holds."""
    if known is not None and (known.device, known.dtype) != (subject.device, subject.dtype):
        return "another device or number format is used now"
    return reason_to_measure(
        known,
        await asyncio.to_thread(hardware),
        unix_s=SystemClock().unix_s(),
        cpu_busy_share=await asyncio.to_thread(cpu_busy_share),
    )


async def _frames(subject: Subject) -> FrameCost | None:
    """What frames cost here; None where they cannot be exchanged, which serving will say better."""
    token_bytes = subject.spec.hidden_size * _ELEMENT_BYTES[subject.dtype]
    order = ExchangeOrder(token_bytes=token_bytes, exchange_s=EXCHANGE_S)
    try:
        return await measure_exchange(order)
    except WorkerFailed as error:
        _logger.warning("what frames cost was not measured: %s", error)
        return None


def _shares_cores(
    frames: FrameCost, subject: Subject, samples: ComputeSamples, machine: Hardware
) -> bool:
    """Whether no core is left for the agent while the blocks compute."""
    busy_threads = samples.threads if subject.device == "cpu" else 1
    return frames.stretch > _WHOLE_CORE or busy_threads >= machine.cpu_threads


class _Durations:
    """How long each part takes."""

    def __init__(self) -> None:
        self._parts: dict[str, float] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        began_s = time.perf_counter()
        yield
        self._parts[name] = time.perf_counter() - began_s

    def rounded(self) -> dict[str, float]:
        return {name: round(seconds, 2) for name, seconds in self._parts.items()}


class _Accelerator:
    """What the GPU draws while it is measured."""

    def __init__(self) -> None:
        self._uuid = ""
        self._watts: list[float] = []

    def begin(self, uuid: str) -> None:
        """Work on this one begins."""
        self._uuid = uuid

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Note its power until the end of the block."""
        watching = asyncio.create_task(self._watch(), name="gpu-power")
        try:
            yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    def power_w(self) -> Quantity | None:
        """Under load: of the upper half, since it rests between the parts."""
        upper = sorted(self._watts)[len(self._watts) // 2 :]
        return _maybe(upper, "W")

    def busy_share_before(self, machine: Hardware) -> Quantity | None:
        """What others made of it before we began."""
        gpu = next((gpu for gpu in machine.gpus if bare(gpu.uuid) == bare(self._uuid)), None)
        return None if gpu is None or gpu.busy_share is None else exactly(gpu.busy_share, "1")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_POWER_EVERY_S)
            gpu = await asyncio.to_thread(gpu_of, self._uuid) if self._uuid else None
            if gpu is not None and gpu.power_w is not None:
                self._watts.append(gpu.power_w)


def _model(subject: Subject) -> MeasuredModel:
    spec = subject.spec
    return MeasuredModel(
        name=spec.name,
        hidden_size=spec.hidden_size,
        element_bytes=_ELEMENT_BYTES[subject.dtype],
        block_parameters=spec.block_parameters,
        head_parameters=spec.vocab_size * spec.hidden_size,
        kv_elements_per_token=spec.kv_bytes_per_token(1, 1),
    )


def _cpu(machine: Hardware) -> CpuFacts:
    frequency_hz = cpu_frequency_hz()
    return CpuFacts(
        name=machine.cpu_name,
        cores=machine.cpu_cores,
        usable_threads=machine.cpu_threads,
        frequency_hz=None if frequency_hz is None else exactly(frequency_hz, "Hz"),
    )


def _gpu(gpu: Gpu) -> GpuFacts:
    return GpuFacts(
        name=gpu.name,
        uuid=gpu.uuid,
        driver=gpu.driver,
        memory_total_bytes=exactly(gpu.memory_total_bytes, "B"),
        memory_free_bytes=exactly(gpu.memory_free_bytes, "B"),
        power_limit_w=None if gpu.power_limit_w is None else exactly(gpu.power_limit_w, "W"),
        temperature_c=None if gpu.temperature_c is None else exactly(gpu.temperature_c, "°C"),
    )


def _maybe(samples: list[float], unit: str) -> Quantity | None:
    return quantity(samples, unit) if samples else None
