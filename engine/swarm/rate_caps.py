"""What all links together may send and take, so that the household's line stays usable."""

from __future__ import annotations

import asyncio
from time import monotonic

from engine.core.clock import Clock
from engine.core.ids import PeerId
from engine.core.reach import LinkPath
from engine.swarm.transport import ByteStream, StreamHandler, Transport

_SEGMENT_BYTES = 1448
_HEADERS_BYTES = 52
"""IP's and TCP's, in front of each segment."""
_WRAPPING_BYTES = 34
"""What encryption and multiplexing put around a write."""
_READ_BYTES = (_WRAPPING_BYTES + _HEADERS_BYTES) // 2
"""The same per read: a frame is read in two at least, its header and what follows."""
_AHEAD_BYTES = 512 << 10
"""What has come over the line and lies in buffers before a sender feels that we read slowly."""
_AHEAD_PART = 8
"""It is paid for by so small a part of each read more: one long pause would look like silence."""
_AT_ONCE_S = 0.001
"""A read that takes no longer found its bytes there."""
_LATE_S = 0.1
_PIECE_S = 0.05
_MIN_PIECE_BYTES = 1 << 10
_MAX_PIECE_BYTES = 256 << 10


class RateCap:
    """One direction. Its rate may be changed at any time; 0: unlimited."""

    def __init__(self, clock: Clock) -> None:
        self.bytes_per_s = 0.0
        self.total_bytes = 0
        """What has gone by since the engine started."""
        self._clock = clock
        self._free_at_s = 0.0

    @property
    def piece_bytes(self) -> int:
        """What should pass at once, so that others get their turn."""
        if not self.bytes_per_s:
            return _MAX_PIECE_BYTES
        return int(min(max(self.bytes_per_s * _PIECE_S, _MIN_PIECE_BYTES), _MAX_PIECE_BYTES))

    def turn_s(self, num_bytes: int, ahead_bytes: int = 0) -> float:
        """How long so many bytes of the line must wait; turns come in the order of asking.

        Args:
            num_bytes: What passes now.
            ahead_bytes: What has passed already, and will be counted later.
        """
        self.total_bytes += num_bytes
        if not self.bytes_per_s:
            return 0.0
        now_s = self._clock.monotonic_s()
        # Who woke up late may catch up, but no more than that is saved for later.
        took_s = (num_bytes + ahead_bytes) / self.bytes_per_s
        self._free_at_s = max(now_s - _LATE_S, self._free_at_s) + took_s
        return max(0.0, self._free_at_s - now_s)

    async def take(self, num_bytes: int, ahead_bytes: int = 0) -> bool:
        """Wait for the turn of so many bytes of the line, see `turn_s`; whether there was a wait."""
        wait_s = self.turn_s(num_bytes, ahead_bytes)
        if wait_s:
            await asyncio.sleep(wait_s)
        return wait_s > 0


class HouseholdLine:
    """Both directions of the line that all links share, and downloads too.

    A cap is of what the line carries, as its owner would measure it: headers, encryption and
    acknowledgements count.
    """

    def __init__(self, clock: Clock) -> None:
        self.up = RateCap(clock)
        self.down = RateCap(clock)

    async def send(self, num_bytes: int) -> None:
        """Wait until a write of so many bytes may leave."""
        segments = -(-(num_bytes + _WRAPPING_BYTES) // _SEGMENT_BYTES)
        self.down.turn_s(_acknowledging(num_bytes))
        await self.up.take(num_bytes + _WRAPPING_BYTES + segments * _HEADERS_BYTES)

    async def receive(self, num_bytes: int, ahead_bytes: int = 0) -> bool:
        """Wait until as many more bytes may come as have just been read; see `RateCap.take`."""
        self.up.turn_s(_acknowledging(num_bytes))
        headers = num_bytes * _HEADERS_BYTES // _SEGMENT_BYTES
        return await self.down.take(num_bytes + headers + _READ_BYTES, ahead_bytes)

    async def download(self, num_bytes: int) -> int:
        """Wait as `receive` does; how many bytes may come before the next question."""
        await self.receive(num_bytes)
        return self.down.piece_bytes


def _acknowledging(num_bytes: int) -> int:
    """What goes the other way for it: a segment without data for every two with."""
    return num_bytes * _HEADERS_BYTES // (2 * _SEGMENT_BYTES)


class CappedTransport:
    """A transport whose streams keep to a line; see `engine.swarm.transport.Transport`."""

    def __init__(self, transport: Transport, line: HouseholdLine) -> None:
        self._transport = transport
        self._line = line

    @property
    def local_peer(self) -> PeerId:
        """See `Transport`."""
        return self._transport.local_peer

    def path(self, peer: PeerId) -> tuple[LinkPath, PeerId | None] | None:
        """See `Transport`."""
        return self._transport.path(peer)

    def forget(self, peer: PeerId) -> None:
        """See `Transport`."""
        self._transport.forget(peer)

    async def open(self, peer: PeerId, addresses: tuple[str, ...] = ()) -> ByteStream:
        """See `Transport`."""
        return _CappedStream(await self._transport.open(peer, addresses), self._line)

    async def serve(self, handler: StreamHandler) -> None:
        """See `Transport`."""

        async def serve_capped(peer: PeerId, stream: ByteStream) -> None:
            await handler(peer, _CappedStream(stream, self._line))

        await self._transport.serve(serve_capped)


class _CappedStream:
    def __init__(self, stream: ByteStream, line: HouseholdLine) -> None:
        self._stream = stream
        self._line = line
        self._ahead_bytes = 0
        """Paid for, of what lies in buffers."""
        self._has_waited = False
        """The last read had to, so that what came meanwhile lies there."""

    @property
    def piece_bytes(self) -> int:
        """See `ByteStream`."""
        return min(self._stream.piece_bytes, self._line.down.piece_bytes)

    async def read_into(self, buffer: memoryview) -> None:
        """See `ByteStream`; the sender is slowed down by what we leave unread."""
        began_s, num_bytes = monotonic(), len(buffer)
        await self._stream.read_into(buffer)
        ahead_bytes = 0
        if monotonic() - began_s > _AT_ONCE_S:
            self._ahead_bytes = max(0, self._ahead_bytes - num_bytes)  # the buffers were empty
        elif self._has_waited:
            ahead_bytes = min(num_bytes // _AHEAD_PART, _AHEAD_BYTES - self._ahead_bytes)
            self._ahead_bytes += ahead_bytes
        self._has_waited = await self._line.receive(num_bytes, ahead_bytes)

    async def write(self, *buffers: bytes | memoryview) -> None:
        """See `ByteStream`."""
        up = self._line.up
        if not up.bytes_per_s:
            await self._line.send(sum(map(len, buffers)))  # is counted, and need not wait
            await self._stream.write(*buffers)
            return
        for buffer in buffers:
            view = memoryview(buffer)
            start = 0
            while start < len(view):
                piece = view[start : start + up.piece_bytes]
                await self._line.send(len(piece))
                await self._stream.write(piece)
                start += len(piece)

    def close(self) -> None:
        """See `ByteStream`."""
        self._stream.close()
