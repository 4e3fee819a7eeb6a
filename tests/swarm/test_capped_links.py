"""All that goes over a node's links keeps together to the caps of its line."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import numpy as np

from engine.core.clock import SystemClock
from engine.core.ids import PeerId, SessionId
from engine.protocol.frames import Dtype, Frame, Kind
from engine.protocol.rows import Row, RowFlags
from engine.swarm.links import Links
from engine.swarm.memory_transport import MemoryNetwork
from engine.swarm.rate_caps import CappedTransport, HouseholdLine
from tests.support.swarm import PUBLIC, Node, eventually, quick_config

HOME = PeerId("home")
CLOCK = SystemClock()


class CountedStream:
    def __init__(self, stream, counts):
        self._stream = stream
        self._counts = counts
        self.piece_bytes = stream.piece_bytes
        self.close = stream.close

    async def read_into(self, buffer):
        await self._stream.read_into(buffer)
        self._counts["read"] += len(buffer)

    async def write(self, *buffers):
        self._counts["written"] += sum(map(len, buffers))
        await self._stream.write(*buffers)


class Counted:
    """A transport that counts what really passes it."""

    def __init__(self, transport):
        self._transport = transport
        self.counts = {"read": 0, "written": 0}

    def __getattr__(self, name):
        return getattr(self._transport, name)

    async def open(self, peer, addresses=()):
        return CountedStream(await self._transport.open(peer, addresses), self.counts)

    async def serve(self, handler):
        await self._transport.serve(lambda p, s: handler(p, CountedStream(s, self.counts)))


@asynccontextmanager
async def capped_home(num_others, **fields):
    """(A node on a line, the line, what really passed it, other nodes by peer)."""
    network, line, config = MemoryNetwork(), HouseholdLine(CLOCK), quick_config(**fields)
    counted = Counted(network.transport(HOME))
    others = [PeerId(f"other-{number}") for number in range(num_others)]
    transports = {HOME: CappedTransport(counted, line)}
    transports |= {peer: network.transport(peer) for peer in others}
    nodes = {p: Node(Links(t, config, CLOCK, PUBLIC)) for p, t in transports.items()}
    try:
        for node in nodes.values():
            await node.links.start()
        yield nodes.pop(HOME), line, counted.counts, nodes
    finally:
        for node in nodes.values():
            await node.links.stop()
        await network.stop()


def hidden(session, num_bytes, *, count=1, flags=RowFlags.SAMPLE):
    width = num_bytes // (4 * count)
    row = Row(SessionId(session), 0, count, flags=flags)
    ids = np.zeros(count, np.int32)
    return Frame(Kind.STEP, b"\1" * (4 * width * count), (row,), ids, Dtype.FLOAT32, width)


def filler(num_bytes):
    return Frame(Kind.FILLER, b"\0" * num_bytes)


async def test_what_a_node_sends_is_counted_as_the_line_carries_it_and_keeps_to_its_cap():
    async with capped_home(2) as (home, line, counts, others):
        line.up.bytes_per_s = cap = 6e6
        began_s = CLOCK.monotonic_s()
        for number, peer in enumerate(others):
            for session in range(20):  # what decodes, what prefills, and what measures the line
                home.links.send(peer, hidden(session, 4096))
                home.links.send(peer, hidden(100 + number, 80_000, count=20, flags=RowFlags(0)))
            home.links.send(peer, filler(100_000))
        await eventually(lambda: sum(len(node.got) for node in others.values()) == 80)
        took_s = CLOCK.monotonic_s() - began_s
        assert counts["written"] > 3e6
        assert counts["written"] < line.up.total_bytes < 1.08 * counts["written"]
        assert line.up.total_bytes < cap * (took_s + 0.2)
        # Acknowledgements come the other way.
        assert line.down.total_bytes > 0.01 * counts["written"]


async def test_what_a_node_takes_keeps_to_its_cap_and_no_link_seems_silent_meanwhile():
    async with capped_home(6, dead_after_s=1.0) as (home, line, counts, others):
        for peer, node in others.items():
            await asyncio.gather(home.links.connect(peer), node.links.connect(HOME))
        line.down.bytes_per_s = cap = 8e5
        began_s, before_bytes = CLOCK.monotonic_s(), line.down.total_bytes
        for node in others.values():
            node.links.send(HOME, hidden(1, 300_000))
        await eventually(lambda: len(home.got) == 6)
        took_s = CLOCK.monotonic_s() - began_s
        assert not home.lost
        taken_bytes = line.down.total_bytes - before_bytes
        assert 1.8e6 < taken_bytes < cap * (took_s + 0.2)
        assert counts["read"] < line.down.total_bytes
