"""Reads a socket straight into the memory where its bytes are wanted.

asyncio's `StreamReader` would copy them three times and wake its reader for each. Only reading is
taken over: what is written, and how the end of the connection is told, stays asyncio's business.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

_HELD_BYTES: Final = 64 << 10
"""What comes while nobody reads; then the socket fills, and its sender has to wait."""
_DIRECT_BYTES: Final = 4 << 10
"""Less is read by way of what is held: more may have come with it, and one system call is cheaper
than two."""


class DirectReader(asyncio.BufferedProtocol):
    """The reading side of a connection that asyncio has opened.

    Args:
        reader: Not to be used any more; what it has read already is given out first.
        writer: Of the same connection; works as before.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: Any = writer.transport  # asyncio's types do not say that it can pause
        self._beneath: Any = self._transport.get_protocol()
        came = _what_came(reader)
        self._held = memoryview(bytearray(max(_HELD_BYTES, len(came))))
        self._held[: len(came)] = came
        self._start, self._end = 0, len(came)
        self._wanted: memoryview | None = None
        """Where the next bytes go; None: with what is held."""
        self._arrival: asyncio.Future[None] | None = None
        """Done when the one who waits shall look again."""
        self._is_woken = False
        self._is_over = reader.at_eof() or self._transport.is_closing()
        self.filled_bytes = 0
        """What the one who waits has got so far."""
        self._transport.set_protocol(self)
        self._pause_when_full()

    @property
    def is_over(self) -> bool:
        """Whether no more bytes will ever come."""
        return self._is_over and self._start == self._end

    async def read_into(self, buffer: memoryview) -> int:
        """Fill a buffer of single bytes; some may be lost when this is cancelled.

        Returns:
            How many bytes came: fewer than fit where no more will, or after `wake`.
        """
        self.filled_bytes = 0
        while True:
            self._take_held(buffer[self.filled_bytes :])
            rest = buffer[self.filled_bytes :]
            if not rest or self._is_over or self._is_woken:
                break
            if len(rest) >= _DIRECT_BYTES:
                self._wanted = rest
            self._arrival = self._loop.create_future()
            try:
                await self._arrival
            finally:
                self._wanted = self._arrival = None
        count, self.filled_bytes, self._is_woken = self.filled_bytes, 0, False
        return count

    def wake(self) -> None:
        """Let the one who waits have what has come so far."""
        self._is_woken = self._arrival is not None
        self._tell()

    # What asyncio calls

    def get_buffer(self, sizehint: int) -> memoryview:
        """See `asyncio.BufferedProtocol`."""
        return self._held[self._end :] if self._wanted is None else self._wanted

    def buffer_updated(self, nbytes: int) -> None:
        """See `asyncio.BufferedProtocol`."""
        if self._wanted is None:
            self._end += nbytes
            self._pause_when_full()
            self._tell()
            return
        self.filled_bytes += nbytes
        self._wanted = self._wanted[nbytes:]
        if not self._wanted:
            self._wanted = None
            self._tell()

    def eof_received(self) -> bool | None:
        """See `asyncio.BufferedProtocol`."""
        self._end_all()
        keeps_open: bool | None = self._beneath.eof_received()
        return keeps_open

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        self._end_all()
        self._beneath.connection_lost(exc)

    def pause_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._beneath.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._beneath.resume_writing()

    def _pause_when_full(self) -> None:
        if self._end == len(self._held):
            self._transport.pause_reading()

    def _take_held(self, buffer: memoryview) -> None:
        count = min(len(buffer), self._end - self._start)
        if not count:
            return
        buffer[:count] = self._held[self._start : self._start + count]
        self._start += count
        self.filled_bytes += count
        if self._start == self._end:
            self._start = self._end = 0
            self._transport.resume_reading()

    def _end_all(self) -> None:
        self._is_over = True
        self._tell()

    def _tell(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


def _what_came(reader: asyncio.StreamReader) -> bytes:
    """What lies in a reader's buffer; it has no way of its own to ask that without waiting."""
    reading = reader.read(1 << 30)
    try:
        reading.send(None)
    except StopIteration as came:
        data: bytes = came.value
        return data
    except OSError:
        return b""  # broken, as whoever reads on will see
    reading.close()
    return b""
