"""Reading from streams between peers."""

from __future__ import annotations

from engine.swarm.transport import ByteStream


async def read_exactly(stream: ByteStream, num_bytes: int) -> bytes:
    """The next bytes of a stream."""
    data = bytearray(num_bytes)
    await stream.read_into(memoryview(data))
    return bytes(data)
