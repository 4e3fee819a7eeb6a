"""Over real Unix sockets, as p2pd's are."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import asynccontextmanager, suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.swarm.direct_reader import DirectReader


@asynccontextmanager
async def connection(before=b""):
    """A reader with its writer, and the socket at the far end, which has sent something before."""
    here, there = socket.socketpair()
    there.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=here)
    try:
        await asyncio.get_running_loop().sock_sendall(there, before)
        for _ in range(4):  # so that asyncio has read some of it
            await asyncio.sleep(0)
        yield DirectReader(reader, writer), writer, there
    finally:
        there.close()
        writer.transport.abort()
        await asyncio.sleep(0)


async def read(reader, size):
    """As many bytes as that, or all there are."""
    data = bytearray(size)
    at = 0
    while at < size and (count := await reader.read_into(memoryview(data)[at:])):
        at += count
    return bytes(data[:at])


sizes = st.lists(st.sampled_from([1, 36, 4095, 4096, 70_000]) | st.integers(1, 200_000), max_size=6)


@settings(max_examples=40, deadline=None)
@given(before=st.sampled_from([0, 1, 5000, 150_000]), writes=sizes, reads=sizes)
def test_bytes_come_in_order_however_they_are_cut(before, writes, reads):
    content = random.Random(7).randbytes(before + sum(writes))

    async def exchange():
        async with connection(content[:before]) as (reader, _, there):

            async def send():
                at = before
                for size in writes:
                    data = content[at : at + size]
                    await asyncio.get_running_loop().sock_sendall(there, data)
                    await asyncio.sleep(0)
                    at += size
                there.shutdown(socket.SHUT_WR)

            sending = asyncio.create_task(send())
            parts = [await read(reader, size) for size in reads]
            parts.append(await read(reader, len(content) + 1))
            await sending
            assert await reader.read_into(memoryview(bytearray(1))) == 0
            return b"".join(parts)

    assert asyncio.run(exchange()) == content


async def test_a_sender_has_to_wait_while_nobody_reads():
    async with connection() as (reader, _, there):
        content, sent = random.Random(8).randbytes(8 << 20), 0
        for _ in range(100):
            with suppress(BlockingIOError):
                sent += there.send(content[sent:])
            await asyncio.sleep(0)
        assert sent < 1 << 20
        assert await read(reader, sent) == content[:sent]
        there.send(b"more")
        assert await read(reader, 4) == b"more"


async def test_the_one_who_waits_hears_of_the_end():
    async with connection() as (reader, _, there):
        waiting = asyncio.create_task(read(reader, 10_000))
        await asyncio.sleep(0.01)
        there.send(b"last")
        await asyncio.sleep(0.01)
        there.close()
        assert await asyncio.wait_for(waiting, 5) == b"last"


async def test_the_writer_waits_for_room_as_before_and_hears_when_the_connection_is_closed():
    async with connection() as (_, writer, there):
        writer.write(bytes(4 << 20))
        draining = asyncio.create_task(writer.drain())
        await asyncio.sleep(0.01)
        assert not draining.done()
        loop, got = asyncio.get_running_loop(), 0
        while got < 4 << 20:
            got += len(await loop.sock_recv(there, 1 << 20))
        await asyncio.wait_for(draining, 5)
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), 5)


async def test_the_one_who_waits_can_be_given_what_has_come():
    async with connection() as (reader, _, there):
        data = memoryview(bytearray(10_000))
        waiting = asyncio.create_task(reader.read_into(data))
        await asyncio.sleep(0)
        there.send(b"some")
        while reader.filled_bytes < 4:
            await asyncio.sleep(0)
        assert not waiting.done()
        reader.wake()
        assert await waiting == 4
        assert data[:4] == b"some"
        assert not reader.is_over
        there.send(b"more")
        assert await read(reader, 4) == b"more"
