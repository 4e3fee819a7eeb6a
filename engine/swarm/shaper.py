"""An artificial link: bytes leave at a rate, then travel for a while, in order."""

from __future__ import annotations

import asyncio
from collections import deque

from engine.config import LinkShape
from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable
from engine.swarm.transport import ByteStream

_TIMER_BIAS_S = 0.0005
"""The event loop's timers are up to 1 ms late; asking for less centres the error on zero."""
_PIECE_BYTES = 256 << 10


class Shaper:
    """The line to one peer, shared by the streams to it."""

    def __init__(self, shape: LinkShape, clock: Clock) -> None:
        self._shape = shape
        self._clock = clock
        self._free_at_s = 0.0

    @property
    def rate_bytes_per_s(self) -> float:
        """Of the line; 0: unlimited."""
        return self._shape.rate_bytes_per_s

    def wrap(self, stream: ByteStream) -> ByteStream:
        """The stream, behind this line; itself when the line is ideal."""
        if not self._shape.rate_bytes_per_s and not self._shape.delay_s:
            return stream
        return _ShapedStream(stream, self, self._clock)

    async def serialise(self, num_bytes: int) -> float:
        """Wait until so many bytes have left; when they arrive (`Clock.monotonic_s`)."""
        now_s = self._clock.monotonic_s()
        # Reckoned from the last departure and not from now, so that late timers do not add up.
        left_at_s = max(now_s, self._free_at_s)
        if self._shape.rate_bytes_per_s:
            left_at_s += num_bytes / self._shape.rate_bytes_per_s
        self._free_at_s = left_at_s
        await _sleep(left_at_s - now_s)
        return left_at_s + self._shape.delay_s


class _ShapedStream:
    def __init__(self, stream: ByteStream, shaper: Shaper, clock: Clock) -> None:
        self._stream = stream
        self._shaper = shaper
        self._clock = clock
        self._travelling: deque[tuple[float, memoryview]] = deque()
        self._sent = asyncio.Event()
        self._broken = False
        self._carrier = asyncio.create_task(self._carry(), name="shaper")

    @property
    def piece_bytes(self) -> int:
        """See `ByteStream`."""
        return self._stream.piece_bytes

    async def read_into(self, buffer: memoryview) -> None:
        """See `ByteStream`."""
        await self._stream.read_into(buffer)

    async def write(self, *buffers: bytes | memoryview) -> None:
        """See `ByteStream`; returns when the bytes are on the line."""
        for buffer in buffers:
            view = memoryview(buffer)
            # Piece by piece, as on a real line: each arrival is a sign of life.
            for start in range(0, len(view), _PIECE_BYTES):
                if self._broken:
                    raise PeerUnreachable("The stream broke.")
                piece = view[start : start + _PIECE_BYTES]
                self._travelling.append((await self._shaper.serialise(len(piece)), piece))
                self._sent.set()

    def close(self) -> None:
        """See `ByteStream`."""
        self._broken = True
        self._carrier.cancel()
        self._stream.close()

    async def _carry(self) -> None:
        try:
            while True:
                while not self._travelling:
                    self._sent.clear()
                    await self._sent.wait()
                arrives_at_s, piece = self._travelling.popleft()
                await _sleep(arrives_at_s - self._clock.monotonic_s())
                await self._stream.write(piece)
        except PeerUnreachable:
            self.close()


async def _sleep(seconds: float) -> None:
    if seconds > _TIMER_BIAS_S:
        await asyncio.sleep(seconds - _TIMER_BIAS_S)
