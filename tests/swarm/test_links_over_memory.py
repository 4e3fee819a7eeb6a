from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from engine.config import LinkFaults, LinkShape
from engine.core.errors import PeerUnreachable, RemoteProtocolError, StageRefused
from engine.core.ids import PeerId, SessionId
from engine.protocol.frames import Dtype, Frame, Kind, encode
from engine.protocol.messages import Sessions, message_frame
from engine.protocol.rows import Row
from engine.swarm.gate import MAX_STREAMS_PER_PEER
from engine.swarm.handshake import NOT_A_MEMBER, Membership
from tests.support.reading import read_exactly
from tests.support.swarm import ALICE, BOB, CAROL, eventually, memory_swarm

BUSY_S = 1.0
"""What a busy machine may add to a measured time."""


def step(position: int = 0, payload_bytes: int = 0) -> Frame:
    ids = np.arange(3, dtype=np.int32)
    row = Row(SessionId(7), position, 3)
    if payload_bytes:
        width = payload_bytes // 12
        return Frame(Kind.STEP, b"\1" * (width * 12), (row,), ids, Dtype.FLOAT32, width)
    return Frame(Kind.STEP, b"", (row,), ids)


def keep() -> Frame:
    return message_frame(Kind.KEEP, Sessions(sessions=(1, 2)))


async def test_frames_arrive_whole_and_in_order():
    async with memory_swarm(ALICE, BOB) as swarm:
        for position in range(50):
            swarm[ALICE].links.send(BOB, step(position, 700_000 if position % 10 == 0 else 0))
        await eventually(lambda: len(swarm[BOB].got) == 50)
        assert [frame.rows[0].position for _, frame in swarm[BOB].got] == list(range(50))
        assert {peer for peer, _ in swarm[BOB].got} == {ALICE}
        assert len(swarm[BOB].got[10][1].payload) == 699_996


async def test_both_directions_work_at_once():
    async with memory_swarm(ALICE, BOB) as swarm:
        swarm[ALICE].links.send(BOB, step())
        swarm[BOB].links.send(ALICE, step())
        await eventually(lambda: swarm[ALICE].got and swarm[BOB].got)


async def test_frame_to_ourselves_takes_no_stream():
    async with memory_swarm(ALICE) as swarm:
        frame = step()
        swarm[ALICE].links.send(ALICE, frame)
        assert not swarm[ALICE].got  # later, as over a wire
        await eventually(lambda: swarm[ALICE].got == [(ALICE, frame)])
        assert swarm[ALICE].links.neighbours.sent_bytes() == {}


async def test_connect_measures_distance_and_clocks():
    async with memory_swarm(ALICE, BOB) as swarm:
        swarm.network.delay(ALICE, BOB, 0.02)
        await swarm[ALICE].links.connect(BOB)
        assert 0.039 < swarm[ALICE].links.neighbours.rtt_s(BOB) < 0.04 + BUSY_S
        assert abs(swarm[ALICE].links.neighbours.clock_offset_s()) < BUSY_S
        swarm.network.delay(ALICE, BOB, 0.0)
        await eventually(
            lambda: swarm[ALICE].links.neighbours.rtt_s(BOB) < 0.04
        )  # and keeps measuring


async def test_row_bytes_are_counted_per_peer():
    async with memory_swarm(ALICE, BOB, CAROL) as swarm:
        links = swarm[ALICE].links
        links.send(BOB, step())
        links.send(BOB, keep())
        links.send(CAROL, step(payload_bytes=1200))
        await eventually(lambda: swarm[BOB].got and swarm[CAROL].got)
        assert links.neighbours.sent_bytes() == {
            BOB: step().num_bytes,
            CAROL: step(payload_bytes=1200).num_bytes,
        }


async def test_peer_that_does_not_exist_is_reported_lost_and_then_refused_at_once():
    async with memory_swarm(ALICE) as swarm:
        swarm[ALICE].links.send(BOB, step())
        await eventually(lambda: swarm[ALICE].lost)
        assert swarm[ALICE].lost[0][0] == BOB
        with pytest.raises(PeerUnreachable):
            swarm[ALICE].links.send(BOB, step())
        with pytest.raises(PeerUnreachable, match="cannot be reached"):
            await swarm[ALICE].links.connect(BOB)


async def test_cut_link_is_noticed_at_once_by_both_and_works_again_after():
    async with memory_swarm(ALICE, BOB) as swarm:
        swarm[ALICE].links.send(BOB, step())
        await eventually(lambda: swarm[BOB].got)
        swarm.network.cut(ALICE, BOB)
        await eventually(lambda: swarm[ALICE].lost and swarm[BOB].lost, within_s=3)
        swarm.network.heal(ALICE, BOB)
        await swarm[ALICE].links.connect(BOB)
        swarm[ALICE].links.send(BOB, step(9))
        await eventually(lambda: swarm[BOB].got[-1][1].rows[0].position == 9)
        assert len(swarm[ALICE].lost) == len(swarm[BOB].lost) == 1


async def test_link_that_was_up_may_be_used_again_at_once_after_it_broke():
    async with memory_swarm(ALICE, BOB) as swarm:
        swarm[ALICE].links.send(BOB, step())
        await eventually(lambda: swarm[BOB].got)
        swarm.network.cut(ALICE, BOB)
        swarm.network.heal(ALICE, BOB)
        await eventually(lambda: swarm[ALICE].lost)
        swarm[ALICE].links.send(BOB, step(9))
        await eventually(lambda: swarm[BOB].got[-1][1].rows[0].position == 9)


async def test_silent_link_is_noticed_and_an_idle_one_lives():
    async with memory_swarm(ALICE, BOB, dead_after_s=1.5) as swarm:
        await swarm[ALICE].links.connect(BOB)
        await asyncio.sleep(1.8)  # longer than the limit: heartbeats keep an idle link alive
        assert not swarm[ALICE].lost
        swarm.network.blackhole(ALICE, BOB)
        await eventually(lambda: swarm[ALICE].lost and swarm[BOB].lost)
        assert "silent" in swarm[ALICE].lost[0][1]


async def test_opening_into_the_void_ends_with_its_time_out():
    async with memory_swarm(ALICE, BOB, open_timeout_s=0.5) as swarm:
        swarm.network.blackhole(ALICE, BOB)
        with pytest.raises(PeerUnreachable, match="does not answer"):
            await swarm[ALICE].links.connect(BOB)


async def test_killed_peer_is_lost_once_though_both_directions_were_open():
    async with memory_swarm(ALICE, BOB) as swarm:
        swarm[ALICE].links.send(BOB, step())
        swarm[BOB].links.send(ALICE, step())
        await eventually(lambda: swarm[ALICE].got and swarm[BOB].got)
        swarm.network.kill(BOB)
        await eventually(lambda: swarm[ALICE].lost)
        await asyncio.sleep(0.1)
        assert len(swarm[ALICE].lost) == 1


async def test_peer_that_restarts_is_reported_lost_and_can_be_used_again():
    async with memory_swarm(ALICE, BOB) as swarm:
        swarm[BOB].links.send(ALICE, step())
        await eventually(lambda: swarm[ALICE].got)
        swarm.network.kill(BOB)
        again = await swarm.add(BOB)
        again.links.send(ALICE, step(5))
        await eventually(lambda: swarm[ALICE].got[-1][1].rows[0].position == 5)
        assert [peer for peer, _ in swarm[ALICE].lost] == [BOB]
        swarm[ALICE].links.send(BOB, step(6))
        await eventually(lambda: again.got)


async def test_queue_to_a_peer_that_does_not_keep_up_is_bounded():
    async with memory_swarm(ALICE, BOB, dead_after_s=5) as swarm:
        await swarm[ALICE].links.connect(BOB)
        swarm.network.blackhole(ALICE, BOB)
        frame = step(payload_bytes=8 << 20)
        for _ in range(7):
            swarm[ALICE].links.send(BOB, frame)
        with pytest.raises(PeerUnreachable, match="does not keep up"):
            swarm[ALICE].links.send(BOB, frame)


# Strangers


async def raw_stream(swarm, peer=CAROL):
    return await swarm.network.transport(peer).open(BOB)


@pytest.mark.parametrize(
    "junk",
    [b"\0" * 64, b"GET / HTTP/1.1\r\n\r\n" + b"x" * 64, b"SH" + b"\xff" * 200],
    ids=["zeros", "http", "header"],
)
async def test_random_bytes_drop_and_ban_the_peer(junk):
    async with memory_swarm(BOB) as swarm:
        stream = await raw_stream(swarm)
        await stream.write(junk)
        with pytest.raises(PeerUnreachable):
            await read_exactly(stream, 1)
        assert swarm[BOB].links.gate.violations == 1
        second = await raw_stream(swarm)
        with pytest.raises(PeerUnreachable):
            await read_exactly(second, 1)
        assert swarm[BOB].links.gate.refused == 1
        with pytest.raises(PeerUnreachable, match=r"not a Shoal frame|version"):
            swarm[BOB].links.send(CAROL, step())


async def test_frame_before_greeting_is_a_violation():
    async with memory_swarm(BOB) as swarm:
        stream = await raw_stream(swarm)
        await stream.write(*encode(keep()))
        await eventually(lambda: swarm[BOB].links.gate.violations == 1)
        assert not swarm[BOB].got


async def test_oversized_frame_drops_the_peer_without_being_read():
    async with memory_swarm(ALICE, BOB) as swarm:
        await swarm[ALICE].links.connect(BOB)
        channel = swarm[ALICE].links.neighbours.of(BOB).outgoing._channel
        header = bytearray(encode(keep())[0][:36])
        header[16:20] = (3 << 30).to_bytes(4, "little")  # payload bytes
        await channel._stream.write(bytes(header))
        await eventually(lambda: swarm[BOB].links.gate.violations == 1)
        await eventually(lambda: swarm[ALICE].lost)


async def test_flipped_bit_drops_the_peer_and_delivers_nothing():
    async with memory_swarm(ALICE, BOB) as swarm:
        await swarm[ALICE].links.connect(BOB)
        channel = swarm[ALICE].links.neighbours.of(BOB).outgoing._channel
        data = bytearray(b"".join(encode(step(payload_bytes=1200))))
        data[-5] ^= 4
        await channel._stream.write(bytes(data))
        await eventually(lambda: swarm[BOB].links.gate.violations == 1)
        assert not swarm[BOB].got


async def test_handler_that_finds_nonsense_drops_the_peer():
    def refuse(peer, frame):
        raise RemoteProtocolError("The peer asked for session -1.")

    async with memory_swarm(ALICE, BOB) as swarm:
        swarm[BOB].links.on([Kind.CLOSE], refuse)
        swarm[ALICE].links.send(BOB, message_frame(Kind.CLOSE, Sessions(sessions=(1,))))
        await eventually(lambda: swarm[BOB].links.gate.violations == 1)
        await eventually(lambda: swarm[ALICE].lost)


async def test_bug_in_a_handler_is_logged_and_costs_only_that_link(caplog):
    def broken(peer, frame):
        raise KeyError("bug")

    async with memory_swarm(ALICE, BOB, CAROL) as swarm:
        swarm[BOB].links.on([Kind.CLOSE], broken)
        swarm[CAROL].links.send(BOB, step())
        await eventually(lambda: swarm[BOB].got)
        swarm[ALICE].links.send(BOB, message_frame(Kind.CLOSE, Sessions(sessions=(1,))))
        await eventually(lambda: swarm[BOB].lost)
        assert swarm[BOB].lost[0][0] == ALICE
        assert "could not be handled" in caplog.text
        swarm[CAROL].links.send(BOB, step(2))
        await eventually(lambda: len(swarm[BOB].got) == 2)


async def test_stream_that_never_greets_is_closed():
    async with memory_swarm(BOB, dead_after_s=0.6, open_timeout_s=0.5) as swarm:
        stream = await raw_stream(swarm)
        with pytest.raises(PeerUnreachable):
            await asyncio.wait_for(read_exactly(stream, 1), 10)


async def test_streams_per_peer_are_limited():
    async with memory_swarm(BOB) as swarm:
        transport = swarm.network.transport(CAROL)
        for _ in range(MAX_STREAMS_PER_PEER):
            await transport.open(BOB)
        extra = await transport.open(BOB)
        with pytest.raises(PeerUnreachable):
            await asyncio.wait_for(read_exactly(extra, 1), 3)  # at once: silence takes longer


async def test_of_very_many_peers_those_that_no_link_leads_to_are_forgotten():
    async with memory_swarm(ALICE, BOB) as swarm:
        links = swarm[ALICE].links
        await links.connect(BOB)
        for n in range(5000):
            links.learn_addresses(PeerId(f"announced-{n}"), ["/ip4/45.77.0.1/tcp/1"])
        assert len(links.neighbours) == 4096
        links.send(BOB, step())
        await eventually(lambda: swarm[BOB].got)
        assert not swarm[ALICE].lost


# Membership


async def test_member_with_the_key_is_let_in():
    member = Membership("private", b"k" * 32)
    async with memory_swarm(ALICE, BOB, membership=member) as swarm:
        await swarm[ALICE].links.connect(BOB)


@pytest.mark.parametrize("wrong", [None, b"x" * 32])
async def test_wrong_key_is_refused_with_its_reason(wrong):
    async with memory_swarm(BOB, membership=Membership("private", b"k" * 32)) as swarm:
        await swarm.add(ALICE, Membership("private", wrong))
        with pytest.raises(StageRefused, match=NOT_A_MEMBER):
            await swarm[ALICE].links.connect(BOB)
        with pytest.raises(StageRefused, match=NOT_A_MEMBER):
            await swarm[BOB].links.connect(ALICE)
        assert not swarm[BOB].lost


async def test_member_of_another_swarm_is_refused():
    async with memory_swarm(BOB) as swarm:
        await swarm.add(ALICE, Membership("swarm-b"))
        with pytest.raises(StageRefused, match="another swarm"):
            await swarm[ALICE].links.connect(BOB)
        assert swarm[BOB].links.gate.refused == 1


# Shape


async def test_shaped_link_takes_the_time_of_its_rate_and_delay():
    shape = LinkShape(rate_bytes_per_s=2_000_000, delay_s=0.05)
    async with memory_swarm(ALICE, BOB, shape=shape, codec="raw") as swarm:
        await swarm[ALICE].links.connect(BOB)
        assert 0.099 < swarm[ALICE].links.neighbours.rtt_s(BOB) < 0.1 + BUSY_S
        began = time.monotonic()
        for position in range(5):
            swarm[ALICE].links.send(BOB, step(position, payload_bytes=100_000))
        await eventually(lambda: len(swarm[BOB].got) == 5)
        # 5 × 100 KB at 2 MB/s leave in 0.25 s, overlapping with the delay of those before.
        assert 0.299 < time.monotonic() - began < 0.3 + BUSY_S
        assert [frame.rows[0].position for _, frame in swarm[BOB].got] == list(range(5))


async def test_frame_that_takes_longer_than_the_silence_limit_still_arrives():
    shape = LinkShape(rate_bytes_per_s=1_000_000)
    async with memory_swarm(ALICE, BOB, shape=shape, codec="raw", dead_after_s=1.5) as swarm:
        swarm[ALICE].links.send(BOB, step(payload_bytes=2_000_000))  # 2 s; the limit is 1.5 s
        await eventually(lambda: swarm[BOB].got)
        assert not swarm[ALICE].lost
        assert not swarm[BOB].lost


async def test_a_transfer_that_fails_loses_its_frame_and_the_link_on_both_sides():
    faults = LinkFaults(fail_rate=0.2, seed=3)
    async with memory_swarm(ALICE, BOB, faults=faults) as swarm:
        await swarm[ALICE].links.connect(BOB)
        for _ in range(20):
            swarm[ALICE].links.send(BOB, keep())  # only frames of rows are struck
        await eventually(lambda: len(swarm[BOB].got) == 20)
        position = 0
        while not swarm[ALICE].lost:
            swarm[ALICE].links.send(BOB, step(position))
            position += 1
            await asyncio.sleep(0.01)
        await eventually(lambda: swarm[BOB].lost)
        assert 0 < len(swarm[BOB].got) - 20 < position
        assert swarm[BOB].got[-1][1].rows[0].position < position - 1


async def test_hidden_states_are_counted_where_they_leave_and_where_they_arrive():
    async with memory_swarm(ALICE, BOB) as swarm:
        swarm[ALICE].links.send(BOB, step())
        swarm[ALICE].links.send(BOB, step(payload_bytes=1200))
        await eventually(lambda: len(swarm[BOB].got) == 2)
        assert swarm[ALICE].links.hidden_bytes == swarm[BOB].links.hidden_bytes == 1200


async def test_links_to_ideal_peers_keep_their_speed():
    async with memory_swarm(BOB, CAROL) as swarm:
        await swarm.add(ALICE, shape=LinkShape(delay_s=0.5, ideal_peers=(BOB,)))
        await swarm[ALICE].links.connect(BOB)
        await swarm[ALICE].links.connect(CAROL)
        assert (
            swarm[ALICE].links.neighbours.rtt_s(BOB)
            < 0.4
            < swarm[ALICE].links.neighbours.rtt_s(CAROL)
        )
