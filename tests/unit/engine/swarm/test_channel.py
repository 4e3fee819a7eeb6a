from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from engine.core.errors import LocalProtocolError
from engine.core.ids import SessionId
from engine.protocol.frames import HEADER_BYTES, Frame, FrameLimits, Kind, decode, read_header
from engine.protocol.messages import Ping, message_frame
from engine.protocol.probes import Filler, Phase, filler_frame
from engine.protocol.rows import Row, RowFlags
from engine.swarm.channel import Channel


class Line:
    """A stream that keeps what is written."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    async def write(self, *buffers: bytes | memoryview) -> None:
        data = b"".join(buffers)
        header = read_header(data[:HEADER_BYTES], FrameLimits())
        self.frames.append(decode(header, data[HEADER_BYTES:]))

    async def read_into(self, buffer: memoryview) -> None:
        raise AssertionError("nothing is read here")

    def close(self) -> None: ...


def step(session: int, count: int) -> Frame:
    row = Row(SessionId(session), 0, count, flags=RowFlags.SAMPLE)
    return Frame(Kind.STEP, b"", (row,), np.zeros(count, np.int32))


@contextlib.asynccontextmanager
async def writing(channel: Channel) -> AsyncIterator[None]:
    task = asyncio.create_task(channel.write_queued())
    while channel.queued_bytes:
        await asyncio.sleep(0)
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def sent(*frames: Frame) -> list[tuple[int, int]]:
    """(session, tokens) of each frame, in the order of leaving."""
    line = Line()
    channel = Channel(line, 1.0)
    for frame in frames:
        channel.put(frame)
    async with writing(channel):
        return [(frame.rows[0].session, frame.rows[0].count) for frame in line.frames]


async def test_decoding_overtakes_prefill():
    assert await sent(step(1, 100), step(1, 100), step(2, 1)) == [(2, 1), (1, 100), (1, 100)]


async def test_rows_of_one_session_keep_their_order():
    assert await sent(step(1, 100), step(1, 1), step(2, 1)) == [(2, 1), (1, 100), (1, 1)]


async def test_prefill_does_not_leave_before_an_earlier_short_chunk_of_its_session():
    decoding = [step(session, 16) for session in range(1, 9)]
    order = await sent(*decoding, step(9, 16), step(9, 17))
    assert order.index((9, 16)) < order.index((9, 17))


async def test_session_whose_prefill_has_left_is_fast_again():
    line = Line()
    channel = Channel(line, 1.0)
    channel.put(step(1, 100))
    async with writing(channel):
        channel.put(step(2, 100))
        channel.put(step(1, 1))
        while channel.queued_bytes:
            await asyncio.sleep(0)
        assert [(f.rows[0].session, f.rows[0].count) for f in line.frames] == [
            (1, 100),
            (1, 1),
            (2, 100),
        ]


async def test_prefill_keeps_a_share_of_a_full_line():
    order = await sent(step(1, 100), *(step(2, 16) for _ in range(40)))
    assert 5 < order.index((1, 100)) < 20


@dataclass(slots=True)
class SlowLine:
    """Carries what is written at a rate, and reports what has arrived a round trip later."""

    channel: Channel | None = None
    rate_bytes_per_s: float = 2.4e6
    rtt_s: float = 0.2
    written: list[tuple[float, int]] = field(default_factory=list)
    arrived_bytes: float = 0.0
    most_on_its_way: float = 0.0
    now_s: float = 0.0

    async def write(self, *buffers: bytes | memoryview) -> None:
        self.written.append((self.now_s, sum(map(len, buffers))))

    async def read_into(self, buffer: memoryview) -> None:
        raise AssertionError("nothing is read here")

    def close(self) -> None: ...

    def tick(self, step_s: float) -> None:
        self.now_s += step_s
        total = sum(size for _, size in self.written)
        self.most_on_its_way = max(self.most_on_its_way, total - self.arrived_bytes)
        reachable = sum(size for at, size in self.written if at + self.rtt_s <= self.now_s)
        self.arrived_bytes = min(reachable, self.arrived_bytes + self.rate_bytes_per_s * step_s)
        self.channel.reported(int(self.arrived_bytes), self.rtt_s, self.now_s)


async def test_full_line_stays_full_without_more_on_its_way_than_a_round_trip_needs():
    line = SlowLine()
    line.channel = channel = Channel(line, 1.0)
    task = asyncio.create_task(channel.write_queued())
    carried = []
    for tick in range(1200):
        while channel.queued_bytes < 1 << 20:
            channel.put(step(1, 20_000))
        for _ in range(20):
            await asyncio.sleep(0)
        if tick == 600:
            line.most_on_its_way = 0.0
        line.tick(0.01)
        carried.append(line.arrived_bytes)
    assert (carried[-1] - carried[600]) / 5.99 > 0.95 * line.rate_bytes_per_s
    assert line.most_on_its_way < line.rate_bytes_per_s * line.rtt_s + 250_000
    task.cancel()


async def test_peer_cannot_report_more_than_it_was_sent():
    line = Line()
    channel = Channel(line, 1.0)
    channel.reported(1 << 40, 0.1, 0.0)
    channel.reported(1 << 41, 0.1, 1.0)
    for _ in range(100):
        channel.put(step(1, 10_000))
    writing_task = asyncio.create_task(channel.write_queued())
    await asyncio.sleep(0.05)
    assert len(line.frames) < 100
    writing_task.cancel()


async def test_heartbeat_goes_before_everything():
    line = Line()
    channel = Channel(line, 1.0)
    channel.put(step(2, 1))
    channel.put(message_frame(Kind.PING, Ping(sequence=1)), urgent=True)
    async with writing(channel):
        assert [frame.kind for frame in line.frames] == [Kind.PING, Kind.STEP]


async def test_frame_that_does_not_hold_together_is_found_at_once():
    with pytest.raises(LocalProtocolError):
        Channel(Line(), 1.0).put(Frame(Kind.STEP, b"", (Row(SessionId(1), 0, 3),)))


async def test_filler_leaves_when_nothing_else_waits():
    line = Line()
    channel = Channel(line, 1.0)
    for frame in (filler_frame(Filler(1, Phase.STEADY), b"noise"), step(1, 500), step(2, 1)):
        channel.put(frame)
    async with writing(channel):
        assert [frame.kind for frame in line.frames] == [Kind.STEP, Kind.STEP, Kind.FILLER]
