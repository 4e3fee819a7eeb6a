from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import numpy as np
import pytest

from engine.core.errors import LocalProtocolError
from engine.core.ids import SessionId
from engine.protocol.frames import HEADER_BYTES, Frame, FrameLimits, Kind, Row, decode, read_header
from engine.protocol.messages import Ping, message_frame
from engine.swarm.channel import Channel


class Line:
    """A stream that keeps what is written."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    async def write(self, *buffers: bytes | memoryview) -> None:
        data = b"".join(buffers)
        header = read_header(data[:HEADER_BYTES], FrameLimits())
        self.frames.append(decode(header, data[HEADER_BYTES:]))

    async def read_exactly(self, num_bytes: int) -> bytes:
        raise AssertionError("nothing is read here")

    def close(self) -> None: ...


def step(session: int, count: int) -> Frame:
    row = Row(SessionId(session), 0, count)
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


async def test_prefill_waits_for_the_peer_to_receive_what_has_left_and_decoding_does_not():
    line = Line()
    channel = Channel(line, 1.0)
    channel.reported(0, 2.5e6, 0.1)
    writing_task = asyncio.create_task(channel.write_queued())
    for _ in range(100):
        channel.put(step(1, 10_000))
    await asyncio.sleep(0.05)
    first = len(line.frames)
    assert first * 40_000 < 2.5e6 * 0.1 * 1.25 + 3 * 32_768 + 2 * 40_100
    assert first * 40_000 > 2.5e6 * 0.1
    channel.put(step(2, 1))
    await asyncio.sleep(0.05)
    assert [frame.rows[0].session for frame in line.frames[first:]] == [2]
    while channel.queued_bytes:
        channel.reported(sum(frame.num_bytes for frame in line.frames), 2.5e6, 0.1)
        await asyncio.sleep(0)
    assert len(line.frames) == 101
    writing_task.cancel()


async def test_peer_cannot_report_more_than_it_was_sent():
    line = Line()
    channel = Channel(line, 1.0)
    channel.reported(1 << 40, 2.5e6, 0.1)
    for _ in range(100):
        channel.put(step(1, 10_000))
    writing_task = asyncio.create_task(channel.write_queued())
    await asyncio.sleep(0.05)
    assert len(line.frames) < 20
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
