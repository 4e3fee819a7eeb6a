"""Streams that move, over real Unix sockets as p2pd's are."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import asynccontextmanager, suppress

import pytest

from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId
from engine.swarm.moving_stream import TOKEN_BYTES, MovingStream, refuse
from tests.support.reading import read_exactly

TOKEN = b"t" * TOKEN_BYTES
RELAYED, DIRECT = "/ip4/45.77.0.1/tcp/1/p2p/Qm/p2p-circuit", "/ip4/45.77.0.2/tcp/1"


async def pairs():
    """Both ends of a connection, each a reader and a writer."""
    ends = socket.socketpair()
    return [await asyncio.open_unix_connection(sock=end) for end in ends]


@asynccontextmanager
async def stream():
    """Both ends of a stream, and every writer that it has ever had."""
    here, there = await pairs()
    ends = (
        MovingStream(PeerId("acceptor"), RELAYED, TOKEN, here),
        MovingStream(PeerId("opener"), RELAYED, TOKEN, there),
    )
    try:
        yield ends
    finally:
        for end in ends:
            end.close()


async def move(opener: MovingStream, acceptor: MovingStream) -> None:
    here, there = await pairs()

    async def follow():
        assert await there[0].readexactly(TOKEN_BYTES) == TOKEN
        await acceptor.follow(DIRECT, there)

    moved, _ = await asyncio.gather(opener.move(DIRECT, here), follow())
    assert moved


async def test_bytes_of_both_directions_arrive_in_order_over_many_moves():
    rng = random.Random(3)
    sizes = [rng.choice([1, 36, 5000, 300_000]) for _ in range(60)]
    frames = [rng.randbytes(size) for size in sizes]

    async def write(end):
        for frame in frames:
            await end.write(frame)
            await asyncio.sleep(0)

    async def read(end):
        return [await read_exactly(end, len(frame)) for frame in frames]

    async with stream() as (opener, acceptor):
        exchanges = asyncio.gather(write(opener), read(acceptor), write(acceptor), read(opener))
        moves = 0
        while not exchanges.done():
            with suppress(PeerUnreachable):  # one is not over yet
                await move(opener, acceptor)
                moves += 1
            await asyncio.sleep(0.002)
        _, there, _, back = await exchanges
        assert there == frames
        assert back == frames
        assert moves >= 2
        assert opener.address == acceptor.address == DIRECT


async def test_reader_that_waits_on_the_first_stream_gets_what_comes_on_the_second():
    async with stream() as (opener, acceptor):
        reading = asyncio.gather(read_exactly(acceptor, 4), read_exactly(opener, 4))
        await asyncio.sleep(0.01)
        await move(opener, acceptor)
        await opener.write(b"ping")
        await acceptor.write(b"pong")
        assert await asyncio.wait_for(reading, 5) == [b"ping", b"pong"]


async def test_reads_may_straddle_the_move():
    async with stream() as (opener, acceptor):
        reading = asyncio.ensure_future(read_exactly(acceptor, 8))
        await opener.write(b"half")
        await move(opener, acceptor)
        await opener.write(b"rest")
        assert await asyncio.wait_for(reading, 5) == b"halfrest"


async def test_first_stream_is_let_go_when_both_have_turned():
    async with stream() as (opener, acceptor):
        first = opener._writer
        await move(opener, acceptor)
        await opener.write(b"ping")
        await read_exactly(acceptor, 4)
        await acceptor.write(b"pong")
        await read_exactly(opener, 4)
        await asyncio.wait_for(first.wait_closed(), 5)


async def test_stream_that_the_other_side_does_not_know_stays_where_it_is():
    async with stream() as (opener, acceptor):
        here, there = await pairs()
        refuse(there[1])
        assert not await opener.move(DIRECT, here)
        await opener.write(b"ping")
        assert await read_exactly(acceptor, 4) == b"ping"
        assert opener.address == RELAYED


async def test_stream_that_breaks_off_after_fewer_bytes_than_it_said_is_broken():
    async with stream() as (opener, _):
        here, there = await pairs()
        there[1].write(b"\x01" + (1000).to_bytes(8, "little"))
        assert await opener.move(DIRECT, here)
        reading = asyncio.ensure_future(read_exactly(opener, 4))
        await asyncio.sleep(0.01)
        assert not reading.done()
        opener.close()
        with pytest.raises(PeerUnreachable):
            await asyncio.wait_for(reading, 5)
        there[1].close()


async def test_stream_on_which_more_comes_than_its_far_end_said_is_broken():
    async with stream() as (opener, _):
        reading = asyncio.ensure_future(read_exactly(opener, 36))
        await asyncio.sleep(0.01)
        here, there = await pairs()
        there[1].write(b"\x01" + (0).to_bytes(8, "little"))
        first = opener._reader
        assert await opener.move(DIRECT, here)
        first.get_buffer(20)[:20] = bytes(20)  # before the one who reads goes on
        first.buffer_updated(20)
        with pytest.raises(PeerUnreachable):
            await asyncio.wait_for(reading, 5)
        there[1].close()


@pytest.mark.parametrize("is_opener", [True, False])
async def test_move_that_times_out_behind_a_long_write_changes_nothing(is_opener):
    async with stream() as (opener, acceptor):
        mover, other = (opener, acceptor) if is_opener else (acceptor, opener)
        writing = asyncio.ensure_future(mover.write(bytes(8 << 20)))  # nobody reads yet
        await asyncio.sleep(0.01)
        here, there = await pairs()
        there[1].write(b"\x01")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await (mover.move if is_opener else mover.follow)(DIRECT, here)
        assert await there[0].read() == (TOKEN if is_opener else b"")
        there[1].close()
        await read_exactly(other, 8 << 20)
        await writing
        assert mover.address == RELAYED
        await move(opener, acceptor)
        await mover.write(b"ping")
        assert await read_exactly(other, 4) == b"ping"
        assert mover.address == DIRECT


async def test_stream_that_could_not_move_notices_its_end():
    async with stream() as (opener, acceptor):
        writing = asyncio.ensure_future(opener.write(bytes(8 << 20)))
        await asyncio.sleep(0.01)
        here, there = await pairs()
        there[1].write(b"\x01")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await opener.move(DIRECT, here)
        there[1].close()
        acceptor.close()
        with pytest.raises(PeerUnreachable):
            await asyncio.wait_for(read_exactly(opener, 4), 5)
        with pytest.raises(PeerUnreachable):
            await writing


async def test_stream_breaks_when_its_second_breaks_while_it_moves():
    async with stream() as (opener, _):
        here, there = await pairs()
        there[1].write(b"\x01")
        there[1].close()
        with pytest.raises(PeerUnreachable):
            await opener.move(DIRECT, here)
        assert not opener.is_open
        with pytest.raises(PeerUnreachable):
            await opener.write(b"x")
