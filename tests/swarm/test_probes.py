"""Lines between two nodes are measured over the links that everything else uses."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from engine.config import LinkShape
from engine.core.clock import SystemClock
from engine.core.ids import PeerId
from engine.profiler import probe_answers
from engine.profiler.network import QUICK, Prober
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import message_frame, parse
from engine.protocol.probes import (
    MAX_TRAIN_BYTES,
    Filler,
    Phase,
    Probe,
    ProbeReply,
    filler_frame,
)
from tests.support.swarm import ALICE, BOB, CAROL, MemorySwarm, eventually, memory_swarm

RATE = 2_500_000.0
"""20 Mbit/s."""


async def free() -> bool:
    return False


async def costly() -> bool:
    return True


@asynccontextmanager
async def two_nodes(bob_is_metered=free, **fields):
    async with memory_swarm(ALICE, BOB, **fields) as swarm:
        metered = {ALICE: free, BOB: bob_is_metered}
        probers = {
            peer: Prober(swarm[peer].links, SystemClock(), metered[peer]) for peer in metered
        }
        yield swarm, probers
        for prober in probers.values():
            await prober.close()


async def test_a_line_is_measured_both_ways():
    shape = LinkShape(rate_bytes_per_s=RATE, delay_s=0.02)
    async with two_nodes(shape=shape) as (_, probers):
        (line,) = await probers[ALICE].measure(
            [BOB], replace(QUICK, num_bytes=1 << 20, budget_s=20.0)
        )
    assert line.peer == BOB
    assert 0.039 < line.rtt_s.value < 1.0
    for rate in (line.uplink_bytes_per_s, line.downlink_bytes_per_s):
        assert rate is not None
        # A busy machine makes it slower, never faster than the line is.
        assert 0.2 * RATE < rate.value < 1.2 * RATE


async def test_nothing_is_sent_to_whoever_is_on_a_metered_connection():
    async with two_nodes(bob_is_metered=costly) as (swarm, probers):
        (line,) = await probers[ALICE].measure([BOB], QUICK)
        assert line.uplink_bytes_per_s is None
        assert line.downlink_bytes_per_s is None
        assert "costs by the byte" in line.note
        assert swarm[BOB].links.neighbours.in_flight_bytes(ALICE) < 10_000
        assert swarm[ALICE].links.neighbours.in_flight_bytes(BOB) < 10_000


async def test_a_peer_that_is_gone_is_left_out_and_the_others_are_measured():
    gone = PeerId("gone")
    async with two_nodes() as (_, probers):
        found = await probers[ALICE].measure([gone, BOB], replace(QUICK, num_bytes=100_000))
    assert [line.peer for line in found] == [BOB]


async def test_peers_that_say_nothing_leave_the_others_their_share_of_the_time():
    async with two_nodes() as (swarm, probers):
        await swarm.add(CAROL)  # takes frames, and answers none
        small = replace(QUICK, num_bytes=100_000, budget_s=4.0)
        found = await probers[ALICE].measure([CAROL, BOB], small)
    assert [line.peer for line in found] == [BOB]


async def test_two_nodes_that_measure_each_other_at_once_both_succeed():
    async with two_nodes() as (_, probers):
        small = replace(QUICK, num_bytes=200_000, budget_s=20.0)
        found = await asyncio.gather(
            probers[ALICE].measure([BOB], small), probers[BOB].measure([ALICE], small)
        )
    assert [[line.peer for line in lines] for lines in found] == [[BOB], [ALICE]]


async def test_filler_that_nobody_asked_for_costs_the_link():
    async with two_nodes() as (swarm, _):
        swarm[ALICE].links.send(BOB, filler_frame(Filler(1, Phase.GROWING), bytes(5000)))
        await eventually(lambda: swarm[BOB].links.gate.ban_reason(ALICE))


@pytest.mark.parametrize("size", [32 << 10, 16])
async def test_more_or_smaller_pieces_than_granted_cost_the_link(size):
    async with two_nodes() as (swarm, _):
        granted = asyncio.Event()
        swarm[ALICE].links.on([Kind.PROBED], lambda peer, frame: granted.set())
        probe = Probe(request=7, want="receive", num_bytes=100_000)
        swarm[ALICE].links.send(BOB, message_frame(Kind.PROBE, probe))
        await granted.wait()
        for _ in range(10):
            swarm[ALICE].links.send(BOB, filler_frame(Filler(7, Phase.GROWING), bytes(size)))
        await eventually(lambda: swarm[BOB].links.gate.ban_reason(ALICE))


async def replies(swarm: MemorySwarm, *probes: Probe) -> list[ProbeReply]:
    """What Bob answers to each, before the next is asked."""
    got: list[ProbeReply] = []
    swarm[ALICE].links.on([Kind.PROBED], lambda peer, frame: got.append(parse(frame, ProbeReply)))
    for number, probe in enumerate(probes, start=1):
        swarm[ALICE].links.send(BOB, message_frame(Kind.PROBE, probe))
        await eventually(lambda number=number: len(got) >= number)
    return got


async def test_a_stranger_gets_so_much_filler_and_no_more():
    async with memory_swarm(ALICE, BOB) as swarm:
        prober = Prober(swarm[BOB].links, SystemClock(), free)
        ends_at_once = Probe(request=1, want="send", num_bytes=MAX_TRAIN_BYTES, limit_s=0.0)
        got = await replies(swarm, *[ends_at_once] * 20)
        answers = [reply.refused for reply in got if "busy" not in reply.refused]
        granted = answers.index("not willing to measure more for now")
        assert 1 <= granted <= 4
        assert all(answers[granted:])
        await prober.close()


async def test_only_one_train_at_a_time():
    async with memory_swarm(ALICE, BOB) as swarm:
        prober = Prober(swarm[BOB].links, SystemClock(), free)
        first, second = await replies(
            swarm,
            Probe(request=1, want="receive", num_bytes=1000),
            Probe(request=2, want="send", num_bytes=1000, limit_s=0.1),
        )
        assert not first.refused
        assert "busy" in second.refused
        await prober.close()


async def test_a_peer_cannot_claim_that_more_arrived_than_can_have():
    async with memory_swarm(ALICE, BOB) as swarm:
        prober = Prober(swarm[ALICE].links, SystemClock(), free)
        bob = swarm[BOB].links

        def lie(peer: PeerId, frame: Frame) -> None:
            probe = parse(frame, Probe)
            refused = "" if probe.want != "send" else "out of office"
            bob.send(
                peer, message_frame(Kind.PROBED, ProbeReply(request=probe.request, refused=refused))
            )

        def claim(peer: PeerId, frame: Frame) -> None:
            request = int.from_bytes(bytes(frame.payload[:8]), "little")
            reply = ProbeReply(request=request, rates_bytes_per_s=(1e14,), is_steady=True)
            if len(frame.payload) < 100:
                bob.send(peer, message_frame(Kind.PROBED, reply))

        bob.on([Kind.PROBE], lie)
        bob.on([Kind.FILLER], claim)
        (line,) = await prober.measure([BOB], replace(QUICK, num_bytes=100_000))
        assert line.uplink_bytes_per_s is not None
        assert line.uplink_bytes_per_s.value < 1e9
        assert "out of office" in line.note
        await prober.close()


async def test_who_may_send_and_does_not_soon_makes_room_for_others(monkeypatch):
    monkeypatch.setattr(probe_answers, "_BEGIN_LIMIT_S", 0.5)
    async with memory_swarm(ALICE, BOB, CAROL) as swarm:
        probers = [Prober(swarm[peer].links, SystemClock(), free) for peer in (BOB, CAROL)]
        idle = Probe(request=1, want="receive", num_bytes=1000)
        assert [reply.refused for reply in await replies(swarm, idle)] == [""]
        (line,) = await probers[1].measure([BOB], replace(QUICK, num_bytes=100_000))
        assert line.uplink_bytes_per_s is not None
        for prober in probers:
            await prober.close()
