"""One stream as a channel of frames: a bounded queue out, checked frames in."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic

import numpy as np

from engine.core.errors import FrameCorrupt, PeerSilent, PeerUnreachable
from engine.core.generation import DraftMode
from engine.core.ids import SessionId
from engine.protocol.frames import (
    GREETING_PROTOCOL,
    HEADER_BYTES,
    ROW_KINDS,
    Frame,
    FrameLimits,
    Kind,
    check,
    decode,
    encode,
    read_header,
)
from engine.protocol.messages import MAX_MESSAGE_BYTES
from engine.swarm.arrival_rate import ArrivalRate
from engine.swarm.transport import ByteStream
from engine.swarm.window import SendWindow

HELLO_LIMITS = FrameLimits(max_rows=0, max_tokens=0, max_payload_bytes=4096)
"""What a stranger may send before we know who it is."""
MAX_QUEUED_BYTES = 64 << 20
_JOIN_BELOW_BYTES = 32 << 10
_WRITE_BESIDE_ABOVE_BYTES = 128 << 10
_REPORT_WITHIN_ABOVE_BYTES = 1 << 20
"""Frames that prefill, whose sender waits for reports, are far smaller."""
_OVERTAKE = 3
"""A frame of prefill lets by at most so many times its own size."""


class Channel:
    """Frames over a stream. `put` never waits; `write_queued` runs as a task and does.

    What decodes overtakes what prefills, since a person waits for each of its tokens; but never
    frames of its own session, and prefill keeps a share of a full line. Filler, which measures the
    line, leaves when nothing else waits.
    """

    def __init__(
        self,
        stream: ByteStream,
        silence_limit_s: float,
        wire: Callable[[Frame], Awaitable[list[Frame]]] | None = None,
    ) -> None:
        """`wire` says what to write for a frame of the queue when its turn has come."""
        self._stream = stream
        self.protocol = GREETING_PROTOCOL
        """The version that is spoken; the greeting agrees on it."""
        self._silence_limit_s = silence_limit_s
        self._wire = wire
        self._urgent: deque[Frame] = deque()
        self._first: deque[Frame] = deque()
        self._bulk: deque[Frame] = deque()
        self._bulk_sessions: Counter[SessionId] = Counter()
        self._filler: deque[Frame] = deque()
        self._overtaken_bytes = 0
        """Written since the bulk frame that is next could have been."""
        self._window = SendWindow()
        self._filled = asyncio.Event()
        self.queued_bytes = 0
        self.read_bytes = 0
        """All that has come in."""
        self.on_read: Callable[[], None] = lambda: None
        """Called after each frame that has, and within the largest."""
        self.arrival_rate = ArrivalRate()
        """How fast frames come in."""
        self.on_new_rate: Callable[[], None] = lambda: None
        """Called when that has changed much."""
        self._waits_since_s: float | None = None
        """When the piece began to be read that somebody waits for; None: nobody does."""

    async def read(self, limits: FrameLimits) -> Frame:
        """The next frame.

        Raises:
            FrameCorrupt: It breaks the rules; nothing beyond its header's limits was read.
            PeerUnreachable: The stream broke.
        """
        head = bytearray(HEADER_BYTES)
        await self._read_piece(memoryview(head))
        header = read_header(head, limits, self.protocol)
        if header.kind not in ROW_KINDS and header.payload_bytes > MAX_MESSAGE_BYTES:
            raise FrameCorrupt(f"The peer sent a message of {header.payload_bytes} bytes.")
        body = np.empty(header.body_bytes, np.uint8).data
        missing = body
        while missing:
            # In pieces, because each one is a sign of life on a slow line.
            piece_bytes = min(self.arrival_rate.piece_bytes, self._stream.piece_bytes)
            await self._read_piece(missing[:piece_bytes])
            missing = missing[piece_bytes:]
            if not len(missing) or header.body_bytes > _REPORT_WITHIN_ABOVE_BYTES:
                self.on_read()
        if self.arrival_rate.end_frame(more_follows=header.more_follows):
            self.on_new_rate()
        return decode(header, body)

    def put(self, frame: Frame, *, urgent: bool = False) -> None:
        """Queue a frame, an urgent one before all others.

        The payload is not copied: do not change it afterwards.

        Raises:
            LocalProtocolError: The frame does not hold together.
            PeerUnreachable: The queue is full.
        """
        if self.queued_bytes + frame.num_bytes > MAX_QUEUED_BYTES:
            raise PeerUnreachable("Too much is waiting for a peer that does not keep up.")
        check(frame)
        sessions = {row.session for row in frame.rows}
        if urgent:
            self._urgent.append(frame)
        elif frame.kind is Kind.FILLER:
            self._filler.append(frame)
        elif (
            frame.kind is Kind.STEP
            and any(row.is_prefill or row.mode is DraftMode.DSD for row in frame.rows)
        ) or sessions & self._bulk_sessions.keys():
            self._bulk.append(frame)
            self._bulk_sessions.update(sessions)
        else:
            self._first.append(frame)
        self.queued_bytes += frame.num_bytes
        self._filled.set()

    @property
    def in_flight_bytes(self) -> int:
        """What waits here or has left, and has not been reported to have arrived."""
        return self.queued_bytes + self._window.in_flight_bytes

    def reported(self, received_bytes: int, rtt_s: float, now_s: float) -> None:
        """Note what the peer has received; see `SendWindow.reported`."""
        self._window.reported(received_bytes, rtt_s, now_s)
        self._filled.set()

    async def write_queued(self) -> None:
        """Write what `put` queues, for ever.

        Raises:
            PeerUnreachable: The stream broke.
        """
        writing: asyncio.Task[None] | None = None
        try:
            while True:
                frame = self._next()
                if frame is None:
                    self._filled.clear()
                    await self._filled.wait()
                    continue
                wired = [frame] if self._wire is None else await self._wire(frame)
                if writing is not None:
                    await writing
                    writing = None
                if frame.num_bytes < _WRITE_BESIDE_ABOVE_BYTES:
                    await self._write(frame, wired)
                else:  # so that the next frame is encoded while this one leaves
                    writing = asyncio.create_task(self._write(frame, wired))
        finally:
            if writing is not None:
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, frame: Frame, wired: list[Frame]) -> None:
        self._window.sent(sum(part.num_bytes for part in wired))
        goes_on = bool(self._first or (self._bulk and not self._window.is_full) or self._filler)
        more = [True] * (len(wired) - 1) + [goes_on]
        buffers = [
            buffer
            for part, more_follows in zip(wired, more, strict=True)
            for buffer in encode(part, more_follows=more_follows, protocol=self.protocol)
        ]
        if sum(map(len, buffers)) < _JOIN_BELOW_BYTES:
            buffers = [b"".join(buffers)]  # one system call is cheaper than two
        await self._stream.write(*buffers)
        self.queued_bytes -= frame.num_bytes

    def _next(self) -> Frame | None:
        """Take the frame that is to be written next."""
        if self._urgent:
            return self._urgent.popleft()
        if self._first and not self._is_bulks_turn():
            frame = self._first.popleft()
            self._overtaken_bytes += frame.num_bytes if self._bulk else 0
            return frame
        if not self._bulk:
            return self._filler.popleft() if self._filler else None
        if self._window.is_full:
            return None
        frame = self._bulk.popleft()
        self._overtaken_bytes = 0
        self._bulk_sessions -= Counter({row.session for row in frame.rows})
        return frame

    def _is_bulks_turn(self) -> bool:
        """Whether the bulk frame that is next has let enough by."""
        if not self._bulk or self._window.is_full:
            return False
        if self._overtaken_bytes < _OVERTAKE * self._bulk[0].num_bytes:
            return False
        # A short chunk of the same prompt, queued before it, must arrive before it.
        sessions = {row.session for row in self._bulk[0].rows}
        return all(row.session not in sessions for frame in self._first for row in frame.rows)

    async def write(self, frame: Frame) -> None:
        """Write one frame now; only while `write_queued` does not run."""
        buffers = encode(frame, protocol=self.protocol)
        self._window.sent(sum(map(len, buffers)))
        await self._stream.write(*buffers)

    def close(self) -> None:
        """Drop the stream at once; what is queued is lost."""
        self._stream.close()

    async def watch(self) -> None:
        """Run beside whoever reads, so that not every piece needs a time-out of its own.

        Raises:
            PeerSilent: No piece came within the silence limit.
        """
        while True:
            since_s, now_s = self._waits_since_s, monotonic()
            left_s = self._silence_limit_s - (0.0 if since_s is None else now_s - since_s)
            if left_s <= 0:
                raise PeerSilent(f"The peer has been silent for {self._silence_limit_s:g} s.")
            await asyncio.sleep(left_s)

    async def _read_piece(self, piece: memoryview) -> None:
        self._waits_since_s = began_s = monotonic()
        await self._stream.read_into(piece)
        self._waits_since_s = None
        self.read_bytes += len(piece)
        self.arrival_rate.read(began_s, monotonic(), len(piece))


async def run_until_first_ends(*coroutines: Coroutine[object, object, None]) -> None:
    """Run tasks side by side; when one ends, end the others and raise what it raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
