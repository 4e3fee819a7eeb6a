"""Streams between peers of one process, for tests and the simulator, with links that can fail.

Behaves as libp2p does where it matters: streams carry bytes and not messages, writers feel
back-pressure, a cut link breaks streams at once and a black hole stays silent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.core.reach import LinkPath
from engine.swarm.transport import ByteStream, StreamHandler

_WINDOW_BYTES = 1 << 20
"""Bytes that a writer may be ahead of its reader."""


@dataclass(slots=True)
class _Fault:
    cut: bool = False
    blackhole: bool = False
    delay_s: float = 0.0


class _Pipe:
    """One direction of a stream."""

    def __init__(self, fault: _Fault) -> None:
        self._fault = fault
        self._arrived: deque[bytes] = deque()
        self._arrived_bytes = 0
        self._unread_bytes = 0
        self._changed = asyncio.Event()
        self._broken = False

    async def write(self, data: bytes) -> None:
        while self._unread_bytes >= _WINDOW_BYTES and not self._broken:
            await self._wait()
        if self._broken:
            raise PeerUnreachable("The stream broke.")
        if not data:
            return
        self._unread_bytes += len(data)
        if self._fault.blackhole:
            return
        asyncio.get_running_loop().call_later(self._fault.delay_s, self._arrive, data)

    async def read(self, num_bytes: int) -> bytes:
        while self._arrived_bytes < num_bytes:
            if self._broken:
                raise PeerUnreachable("The stream broke.")
            await self._wait()
        parts: list[bytes] = []
        missing = num_bytes
        while missing:
            part = self._arrived.popleft()
            if len(part) > missing:
                self._arrived.appendleft(part[missing:])
                part = part[:missing]
            parts.append(part)
            missing -= len(part)
        self._arrived_bytes -= num_bytes
        self._unread_bytes -= num_bytes
        self._changed.set()
        return b"".join(parts)

    def break_off(self) -> None:
        self._broken = True
        self._changed.set()

    def _arrive(self, data: bytes) -> None:
        self._arrived.append(data)
        self._arrived_bytes += len(data)
        self._changed.set()

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class _MemoryStream:
    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @property
    def piece_bytes(self) -> int:
        """See `ByteStream`."""
        return _WINDOW_BYTES

    async def read_into(self, buffer: memoryview) -> None:
        """See `ByteStream`."""
        buffer[:] = await self._incoming.read(len(buffer))

    async def write(self, *buffers: bytes | memoryview) -> None:
        """See `ByteStream`."""
        for buffer in buffers:
            await self._outgoing.write(bytes(buffer))

    def close(self) -> None:
        """See `ByteStream`."""
        self._incoming.break_off()
        self._outgoing.break_off()


class MemoryNetwork:
    """Peers that reach each other in memory."""

    def __init__(self) -> None:
        self._transports: dict[PeerId, MemoryTransport] = {}
        self._faults: dict[tuple[PeerId, PeerId], _Fault] = {}
        self._streams: list[tuple[PeerId, PeerId, _MemoryStream]] = []

    def transport(self, peer: PeerId) -> MemoryTransport:
        """The transport of a new peer (or of one that comes back)."""
        self._transports[peer] = MemoryTransport(self, peer)
        return self._transports[peer]

    def cut(self, one: PeerId, other: PeerId) -> None:
        """Break all streams between two peers and let them open no more."""
        for fault in self._both(one, other):
            fault.cut = True
        self._break(lambda a, b: {a, b} == {one, other})

    def blackhole(self, one: PeerId, other: PeerId) -> None:
        """Swallow everything between two peers, silently, from now on."""
        for fault in self._both(one, other):
            fault.blackhole = True

    def delay(self, one: PeerId, other: PeerId, delay_s: float) -> None:
        """Let bytes between two peers take this long, one way."""
        for fault in self._both(one, other):
            fault.delay_s = delay_s

    def heal(self, one: PeerId, other: PeerId) -> None:
        """Undo `cut`, `blackhole` and `delay` for streams opened from now on."""
        for pair in ((one, other), (other, one)):
            if self._faults.get(pair) != _Fault():  # streams without a fault may get one later
                self._faults.pop(pair, None)

    def kill(self, peer: PeerId) -> None:
        """Let a peer vanish: its streams break, and it can no longer be reached."""
        self._transports.pop(peer, None)
        self._break(lambda a, b: peer in (a, b))

    async def stop(self) -> None:
        """Break every stream and end the handlers that run for them."""
        self._break(lambda _a, _b: True)
        for transport in list(self._transports.values()):
            await transport.stop()

    def _fault(self, source: PeerId, target: PeerId) -> _Fault:
        return self._faults.setdefault((source, target), _Fault())

    def _both(self, one: PeerId, other: PeerId) -> tuple[_Fault, _Fault]:
        return self._fault(one, other), self._fault(other, one)

    def _break(self, chosen: Callable[[PeerId, PeerId], bool]) -> None:
        for a, b, stream in self._streams:
            if chosen(a, b):
                stream.close()
        self._streams = [entry for entry in self._streams if not chosen(entry[0], entry[1])]

    async def _open(self, source: PeerId, target: PeerId) -> ByteStream:
        there, back = self._both(source, target)
        if there.blackhole:
            await asyncio.Event().wait()  # as a dial into the void; the caller has a time-out
        await asyncio.sleep(there.delay_s + back.delay_s)
        remote = self._transports.get(target)
        if remote is None or there.cut or not remote.serving:
            raise PeerUnreachable(f"The peer …{short(target)} cannot be reached.")
        up, down = _Pipe(there), _Pipe(back)
        near, far = _MemoryStream(down, up), _MemoryStream(up, down)
        self._streams.append((source, target, near))
        remote.accept(source, far)
        return near


class MemoryTransport:
    """`transport.Transport` of one peer of a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork, peer: PeerId) -> None:
        self._network = network
        self._peer = peer
        self._handler: StreamHandler | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def local_peer(self) -> PeerId:
        """See `Transport`."""
        return self._peer

    @property
    def serving(self) -> bool:
        """Whether `serve` has been called."""
        return self._handler is not None

    def path(self, peer: PeerId) -> tuple[LinkPath, PeerId | None] | None:
        """See `Transport`."""
        return LinkPath.DIRECT, None

    def forget(self, peer: PeerId) -> None:
        """See `Transport`; every stream has a connection of its own here."""

    async def open(self, peer: PeerId, addresses: tuple[str, ...] = ()) -> ByteStream:
        """See `Transport`; addresses mean nothing here."""
        return await self._network._open(self._peer, peer)

    async def serve(self, handler: StreamHandler) -> None:
        """See `Transport`."""
        self._handler = handler

    def accept(self, peer: PeerId, stream: ByteStream) -> None:
        """Run the handler for a stream that `peer` opened."""
        if self._handler is None:
            stream.close()
            return
        task = asyncio.ensure_future(self._run(self._handler, peer, stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """End the handlers."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    async def _run(handler: StreamHandler, peer: PeerId, stream: ByteStream) -> None:
        try:
            with suppress(PeerUnreachable):
                await handler(peer, stream)
        finally:
            stream.close()
