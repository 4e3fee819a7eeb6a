"""A stream between two peers that can move to a better connection while it is in use.

A libp2p stream stays on the connection on which it was opened: one that began over a relay would
stay there when a hole has been punched meanwhile. So the side that opened it opens a second one and
both go over to that between two writes. Not a byte is lost: each side says how many it has written
to the first stream, and the other reads just so many there before it turns to the second.

```
opener                                   acceptor
first stream:   token (16 bytes), data ⇄
second stream:  token            ──────▶ the stream is known by it
                                 ◀────── 1, bytes written to the first (8), data
                bytes written (8), data ▶
```
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress

from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm.direct_reader import DirectReader

TOKEN_BYTES = 16
_TOTAL = struct.Struct("<Q")
_WELCOME, _UNKNOWN = b"\x01", b"\x00"
_PIECE_BYTES = 256 << 10

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class MovingStream:
    """See `engine.swarm.transport.ByteStream`. Every write goes to one stream as a whole."""

    def __init__(self, peer: PeerId, address: str, token: bytes, pair: Pair) -> None:
        """`address` is the far end's, `token` what a second stream must show to replace this."""
        self.peer = peer
        self.address = address
        self.token = token
        self._reader, self._writer = DirectReader(*pair), pair[1]
        self._read_bytes = 0
        self._written_bytes = 0
        self._writing = asyncio.Lock()
        self.has_moved = False
        self._is_moving = False
        self._next: tuple[DirectReader, int] | None = None
        """Where reading goes on, once so many bytes have been read here."""
        self._arrived = asyncio.Event()
        """Set when `_next` is known, or never will be."""
        self._old_writer: asyncio.StreamWriter | None = None
        self._is_closed = False

    @property
    def piece_bytes(self) -> int:
        """See `ByteStream`."""
        return _PIECE_BYTES

    @property
    def is_open(self) -> bool:
        """Whether nobody has closed it here."""
        return not self._is_closed

    async def read_into(self, buffer: memoryview) -> None:
        """See `ByteStream`."""
        while buffer:
            left = len(buffer)
            if self._next is not None:
                # More than was said may have come while the one who read waited to go on.
                left = max(0, min(left, self._next[1] - self._read_bytes))
            count = await self._reader.read_into(buffer[:left])
            self._read_bytes += count
            buffer = buffer[count:]
            if buffer and (count == left or self._reader.is_over):
                await self._turn()

    async def write(self, *buffers: bytes | memoryview) -> None:
        """See `ByteStream`."""
        async with self._writing:
            try:
                for buffer in buffers:
                    view = memoryview(buffer)
                    # drain() per piece keeps asyncio from copying a whole frame into its buffer.
                    for start in range(0, len(view), _PIECE_BYTES):
                        if self._writer.is_closing():
                            raise self._broken()
                        piece = view[start : start + _PIECE_BYTES]
                        self._writer.write(piece)
                        self._written_bytes += len(piece)
                        await self._writer.drain()
            except (OSError, RuntimeError) as error:
                raise self._broken() from error

    def close(self) -> None:
        """See `ByteStream`."""
        self._is_closed = True
        self._arrived.set()
        for writer in (self._writer, self._old_writer):
            if writer is not None:
                with suppress(RuntimeError):  # the loop is closing
                    writer.transport.abort()

    async def move(self, address: str, pair: Pair) -> bool:
        """Opener: go over to a second stream; False when the other side does not know us.

        Raises:
            PeerUnreachable: The second stream broke; when it was in use already, so is this.
        """
        reader, writer = pair
        try:
            writer.write(self.token)
            if await reader.readexactly(1) != _WELCOME:
                writer.close()
                return False
            await self._change_over(address, reader, writer, b"")
        except (OSError, EOFError, RuntimeError) as error:
            writer.close()
            raise self._broken() from error
        except asyncio.CancelledError:
            writer.close()
            raise
        return True

    async def follow(self, address: str, pair: Pair) -> None:
        """Acceptor: go over to a second stream, which has shown our token.

        Raises:
            PeerUnreachable: It broke.
        """
        reader, writer = pair
        try:
            await self._change_over(address, reader, writer, _WELCOME)
        except (OSError, EOFError, RuntimeError) as error:
            writer.close()
            raise self._broken() from error
        except asyncio.CancelledError:
            writer.close()
            raise

    async def _change_over(
        self,
        address: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        greeting: bytes,
    ) -> None:
        if self._is_moving or self._is_closed:
            raise EOFError("closed, or on the move already")
        self._is_moving = True
        self._arrived.clear()
        try:
            async with self._writing:
                if self._is_closed:
                    raise EOFError("closed")
                writer.write(greeting + _TOTAL.pack(self._written_bytes))
                self._old_writer, self._writer = self._writer, writer
                self._written_bytes = 0
        except BaseException:  # behind a long write, perhaps: nothing has changed, try later
            self._is_moving = False
            self._arrived.set()
            raise
        try:
            (total,) = _TOTAL.unpack(await reader.readexactly(_TOTAL.size))
            if total < self._read_bytes + self._reader.filled_bytes:
                raise EOFError("fewer bytes than we have")
        except BaseException:
            self.close()  # what we have written to the second is lost
            raise
        self._next = (DirectReader(reader, writer), total)
        self.address, self.has_moved = address, True
        self._arrived.set()
        self._reader.wake()  # who waits for more than will come there

    async def _turn(self) -> None:
        """The first stream has ended: go on with the second, if there is one."""
        if self._is_moving:
            await self._arrived.wait()  # the first's end may overtake the second's beginning
        if self._is_closed or self._next is None or self._next[1] != self._read_bytes:
            raise self._broken()
        (self._reader, _), self._next, self._read_bytes = self._next, None, 0
        old, self._old_writer = self._old_writer, None
        if old is not None:
            old.close()  # flushes what is still on its way
        self._is_moving = False

    def _broken(self) -> PeerUnreachable:
        return PeerUnreachable(f"The connection to the peer …{short(self.peer)} broke.")


def refuse(writer: asyncio.StreamWriter) -> None:
    """Answer a second stream whose token nobody knows."""
    writer.write(_UNKNOWN)
    writer.close()
