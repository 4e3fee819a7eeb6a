"""The process that exchanges frames with itself; see `engine.profiler.exchange`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from engine.config import SwarmConfig
from engine.core.clock import SystemClock
from engine.core.ids import SessionId
from engine.core.lifetime import die_with_parent
from engine.profiler.exchange import ExchangeOrder, ExchangeSamples, FrameSamples
from engine.protocol.frames import ELEMENT_BYTES, Dtype, Frame, Kind
from engine.protocol.rows import Row, RowFlags
from engine.swarm.handshake import Membership
from engine.swarm.hivemind_transport import HivemindTransport
from engine.swarm.links import Links
from engine.swarm.peer import LOOPBACK, SwarmPeer

_ROWS: Final = (1, 64)
_PARTS: Final = 5
"""Samples of each size, of some frames each."""
_SCRATCH_BYTES: Final = 32 << 20
_PAUSE_S: Final = 0.01
_SETTLING_S: Final = 1.0
"""Both p2pd still set themselves up for so long."""
_BUSY_S: Final = 0.3
_SILENCE_LIMIT_S: Final = 5.0
_OURSELVES: Final = Membership("exchange")


async def exchange(order: ExchangeOrder) -> ExchangeSamples:
    """Frames of hidden states, raw, each answered by one like it."""
    # Encoding is measured by itself, and counted by whoever plans only where it pays.
    config = SwarmConfig(codec="raw", reachability="direct")
    with tempfile.TemporaryDirectory(prefix="shoal-exchange-") as folder:
        async with _peer(Path(folder, "one"), config) as (one, _):
            async with _peer(Path(folder, "other"), config) as (other, addresses):
                other.on([Kind.STEP], other.send)
                await one.connect(other.local_peer, addresses)
                await asyncio.sleep(_SETTLING_S)
                exchanged = _Exchange(one, other, order.exchange_s / len(_ROWS) / _PARTS)
                frames = [await exchanged.of(_frame(order, rows)) for rows in _ROWS]
    return ExchangeSamples(frames=frames, stretch=_stretch())


@contextlib.asynccontextmanager
async def _peer(
    identity_file: Path, config: SwarmConfig
) -> AsyncIterator[tuple[Links, tuple[str, ...]]]:
    """A peer with links, and where it is reached."""
    peer = await SwarmPeer.start(identity_file, config=config, listen=LOOPBACK)
    try:
        links = Links(HivemindTransport(peer, config), config, SystemClock(), _OURSELVES)
        await links.start()
        try:
            yield links, tuple(each.rpartition("/p2p/")[0] for each in peer.addresses())
        finally:
            await links.stop()
    finally:
        await peer.stop()


class _Exchange:
    """Frames there and back, and the processor time that they take."""

    def __init__(self, one: Links, other: Links, part_s: float) -> None:
        self._one, self._other, self._part_s = one, other, part_s
        self._back = asyncio.Event()
        self._daemons = psutil.Process().children(recursive=True)
        self._scratch = np.zeros(_SCRATCH_BYTES, np.uint8)  # as much as caches hold
        one.on([Kind.STEP], lambda peer, frame: self._back.set())

    async def of(self, frame: Frame) -> FrameSamples:
        """Samples for frames like this one."""
        await self._there_and_back(frame)  # the first one warms up
        frame_s = [await self._part(frame) for _ in range(_PARTS)]
        return FrameSamples(payload_bytes=len(frame.payload), frame_s=frame_s)

    async def _part(self, frame: Frame) -> float:
        """Processor seconds of one frame, in the mean."""
        frames, others_s, used_s = 0, 0.0, self._used_s()
        until_s = time.perf_counter() + self._part_s
        while not frames or time.perf_counter() < until_s:
            # A pass lies between two frames of a stage: it leaves nothing of them in the caches, and
            # they have gone to sleep meanwhile. In a tight loop they would cost half as much.
            began_s = time.thread_time()
            self._scratch += 1
            others_s += time.thread_time() - began_s
            await asyncio.sleep(_PAUSE_S)
            await self._there_and_back(frame)
            frames += 2
        return (self._used_s() - used_s - others_s) / frames

    async def _there_and_back(self, frame: Frame) -> None:
        self._back.clear()
        self._one.send(self._other.local_peer, frame)
        async with asyncio.timeout(_SILENCE_LIMIT_S):
            await self._back.wait()

    def _used_s(self) -> float:
        """Processor time of this process and both p2pd."""
        return time.process_time() + sum(map(_processor_s, self._daemons))


def _processor_s(process: psutil.Process) -> float:
    """Processor time of another process."""
    if platform.system() != "Linux":
        times = process.cpu_times()
        return times.user + times.system
    # clock_getcpuclockid(3), which Python does not offer; what others say ticks every 10 ms only.
    return time.clock_gettime((~process.pid << 3) | 2)


def _frame(order: ExchangeOrder, num_rows: int) -> Frame:
    element_bytes = ELEMENT_BYTES[Dtype.BFLOAT16]
    width = max(1, order.token_bytes // element_bytes)
    return Frame(
        Kind.STEP,
        os.urandom(num_rows * width * element_bytes),
        tuple(Row(SessionId(row + 1), 1, 1, flags=RowFlags.SAMPLE) for row in range(num_rows)),
        np.zeros(num_rows, np.int32),
        Dtype.BFLOAT16,
        width,
    )


def _stretch() -> float:
    """How long a second of processor time takes: more than one where others share the processor."""
    began_s, used_s = time.perf_counter(), time.thread_time()
    while time.perf_counter() - began_s < _BUSY_S:
        pass
    return (time.perf_counter() - began_s) / (time.thread_time() - used_s)


def main() -> None:
    """Entry of the process."""
    die_with_parent(int(sys.argv[1]))
    # Ctrl-C in a terminal reaches the whole group; who asked decides when this ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever libraries print must not come between our lines.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    order = ExchangeOrder.model_validate_json(sys.stdin.readline())
    samples = asyncio.run(exchange(order))
    with contextlib.suppress(BrokenPipeError):  # who asked has gone
        lines.write(samples.model_dump_json() + "\n")
        lines.flush()
