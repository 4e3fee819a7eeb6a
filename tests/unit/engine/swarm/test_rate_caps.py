import asyncio

import pytest

from engine.core.clock import SystemClock
from engine.core.ids import PeerId
from engine.swarm.memory_transport import MemoryNetwork
from engine.swarm.rate_caps import CappedTransport, HouseholdLine, RateCap
from tests.support.reading import read_exactly


class HandClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def unix_s(self) -> float:
        return self.now_s


@pytest.mark.parametrize("late_s", [0.0, 0.01])
def test_a_minute_of_many_writers_is_a_minute_of_the_line(late_s):
    clock = HandClock()
    cap = RateCap(clock)
    cap.bytes_per_s = 1e6
    sent = 0
    while clock.now_s < 60:  # each writer waits for its turn, and wakes up a little late
        waits_s = [cap.turn_s(size) for size in (100, 5000, cap.piece_bytes)]
        sent += 5100 + cap.piece_bytes
        clock.now_s += max(waits_s) + late_s
    assert sent == pytest.approx(clock.now_s * 1e6, rel=0.05)
    assert sent <= clock.now_s * 1e6 * 1.01


def test_unused_time_is_not_saved_up():
    clock = HandClock()
    cap = RateCap(clock)
    cap.bytes_per_s = 1e6
    clock.now_s = 3600.0
    assert cap.turn_s(1_000_000) == pytest.approx(1.0, abs=0.11)


def test_without_a_cap_nobody_waits():
    assert RateCap(HandClock()).turn_s(1 << 30) == 0.0


async def test_streams_carry_the_same_bytes_under_a_cap_and_both_ways_have_their_own():
    network, line = MemoryNetwork(), HouseholdLine(SystemClock())
    alice, bob = PeerId("alice"), PeerId("bob")
    accepted = asyncio.Queue()
    ended = asyncio.Event()

    async def accept(peer, stream):
        accepted.put_nowait(stream)
        await ended.wait()

    transport = CappedTransport(network.transport(alice), line)
    await transport.serve(accept)
    await network.transport(bob).serve(accept)
    assert transport.local_peer == alice
    stream = await transport.open(bob)
    other = await accepted.get()
    content = bytes(range(256)) * 400
    line.up.bytes_per_s = line.down.bytes_per_s = 1e6
    began_s = SystemClock().monotonic_s()
    await stream.write(content[:1000], memoryview(content)[1000:])
    assert SystemClock().monotonic_s() - began_s >= len(content) / 1e6 - 0.11
    assert await read_exactly(other, len(content)) == content
    line.up.bytes_per_s = 0  # at any time
    await stream.write(content)
    await other.write(content)
    assert await read_exactly(stream, len(content)) == content
    stream.close()
    ended.set()
    await network.stop()


async def test_what_lies_in_buffers_has_passed_the_line_too():
    network, line = MemoryNetwork(), HouseholdLine(SystemClock())
    alice, bob = PeerId("alice"), PeerId("bob")
    ended = asyncio.Event()

    async def pour(peer, stream):
        for _ in range(100):
            await stream.write(bytes(40_000))
        await ended.wait()

    await network.transport(bob).serve(pour)
    stream = await CappedTransport(network.transport(alice), line).open(bob)
    line.down.bytes_per_s = 8e6
    began_s = SystemClock().monotonic_s()
    read_bytes = 0
    while read_bytes < 4_000_000:
        await read_exactly(stream, 40_000)
        read_bytes += 40_000
    took_s = SystemClock().monotonic_s() - began_s
    # While half a megabyte more lay in buffers, at most as much as that has come.
    assert line.down.total_bytes + 300_000 < 8e6 * (took_s + 0.11)
    ended.set()
    await network.stop()
