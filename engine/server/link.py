"""Agent ↔ worker: control messages through a socket pair, tensors through shared memory.

A message is a 4-byte length and msgpack. Hidden states never pass the socket: an anonymous shared
file has slots, each with a region for what goes in and one for what comes out. A forward pass
borrows a slot from its submission until its result has been used; there are two, so that one pass
computes while the next is handed over and the last one's result is sent. The file has no name, so
nothing is left behind when either side is killed.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
import struct
from typing import Any

import msgpack

from engine.core.errors import WorkerFailed

_LENGTH = struct.Struct("<I")
MAX_MESSAGE_BYTES = 64 << 20
SLOTS = 2
"""Forward passes that may be under way at once."""

Message = dict[str, Any]


class SharedRegions:
    """Regions for hidden states, each of `region_bytes`: per slot one to and one from the worker."""

    def __init__(self, fd: int, region_bytes: int) -> None:
        self.fd = fd
        self.region_bytes = region_bytes
        self._map = mmap.mmap(fd, 2 * SLOTS * region_bytes)
        view = memoryview(self._map)
        regions = [view[at * region_bytes :][:region_bytes] for at in range(2 * SLOTS)]
        self.to_worker = regions[:SLOTS]
        self.to_agent = regions[SLOTS:]

    @classmethod
    def create(cls, region_bytes: int) -> SharedRegions:
        """Make the shared file."""
        fd = os.memfd_create("shoal-worker", os.MFD_CLOEXEC)
        os.ftruncate(fd, 2 * SLOTS * region_bytes)
        return cls(fd, region_bytes)

    def close(self) -> None:
        """Unmap and close."""
        for region in (*self.to_worker, *self.to_agent):
            region.release()
        self._map.close()
        os.close(self.fd)


class WorkerSocket:
    """The worker's end: blocking, used by its main loop."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)

    def receive(self) -> Message | None:
        """The next message; None when the agent is gone."""
        head = self._read(_LENGTH.size)
        if head is None:
            return None
        body = self._read(_LENGTH.unpack(head)[0])
        return None if body is None else msgpack.unpackb(body)

    def send(self, message: Message) -> None:
        """Send a message; a broken pipe means that the agent is gone and ends the process."""
        body = msgpack.packb(message)
        self._socket.sendall(_LENGTH.pack(len(body)) + body)

    def _read(self, count: int) -> bytes | None:
        data = bytearray()
        while len(data) < count:
            try:
                part = self._socket.recv(count - len(data))
            except ConnectionError:
                return None
            if not part:
                return None
            data += part
        return bytes(data)


class AgentSocket:
    """The agent's end, on its event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def wrap(cls, end: socket.socket) -> AgentSocket:
        """Take over one end of a socket pair."""
        reader, writer = await asyncio.open_unix_connection(sock=end, limit=1 << 20)
        return cls(reader, writer)

    async def receive(self) -> Message:
        """The next message.

        Raises:
            WorkerFailed: The worker has ended.
        """
        try:
            head = await self._reader.readexactly(_LENGTH.size)
            length = _LENGTH.unpack(head)[0]
            if length > MAX_MESSAGE_BYTES:
                raise WorkerFailed("The compute process sent nonsense; it will be restarted.")
            message: Message = msgpack.unpackb(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError) as error:
            raise WorkerFailed("The compute process ended unexpectedly.") from error
        return message

    def send(self, message: Message) -> None:
        """Queue a message; the worker reads promptly, so the buffer stays small."""
        body = msgpack.packb(message)
        self._writer.write(_LENGTH.pack(len(body)) + body)

    def close(self) -> None:
        """Close; the worker ends when it sees this."""
        self._writer.close()
