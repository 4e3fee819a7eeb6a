"""Peers that accept no connections, and the relays that they are reached through."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack, asynccontextmanager

import numpy as np
import pytest

from engine.config import SwarmConfig
from engine.core.clock import SystemClock
from engine.core.errors import PeerUnreachable
from engine.core.ids import SessionId
from engine.core.reach import LinkPath, Reach
from engine.protocol.frames import Dtype, Frame, Kind
from engine.protocol.rows import Row, RowFlags
from engine.swarm.addresses import is_circuit, is_loopback, relay_of
from engine.swarm.circuits import reserve
from engine.swarm.hivemind_transport import HivemindTransport
from engine.swarm.links import Links
from engine.swarm.peer import EVERY_INTERFACE, SwarmPeer
from tests.support.swarm import PUBLIC, Node, eventually

CONFIG = SwarmConfig(heartbeat_s=0.3, dead_after_s=3.0)
OUTBOUND = CONFIG.model_copy(update={"reachability": "outbound_only"})
START_LIMIT_S = 60.0


@asynccontextmanager
async def swarm_peer(tmp_path, name, *others, config=CONFIG):
    bootstrap = tuple(
        address for other in others for address in other.addresses() if is_loopback(address)
    )
    peer = await SwarmPeer.start(
        tmp_path / f"{name}.key", bootstrap, config, listen=EVERY_INTERFACE
    )
    try:
        yield peer
    finally:
        await peer.stop()


@asynccontextmanager
async def node_of(peer):
    links = Links(HivemindTransport(peer, CONFIG), CONFIG, SystemClock(), PUBLIC)
    await links.start()
    try:
        yield Node(links)
    finally:
        await links.stop()


def step(size, position=0):
    hidden = np.full(size, position % 251, np.uint8).tobytes()
    row = Row(SessionId(1), position, 1, flags=RowFlags.SAMPLE)
    width = size // 4
    return Frame(Kind.STEP, hidden, (row,), np.zeros(1, np.int32), Dtype.FLOAT32, width)


async def test_peer_that_others_can_connect_to_knows_and_relays(tmp_path):
    async with (
        swarm_peer(tmp_path, "first") as first,
        swarm_peer(tmp_path, "second", first) as second,
    ):
        assert second.reach is Reach.DIRECT
        assert second.relays
        assert not any(map(is_circuit, second.announce_addresses()))


async def test_peer_that_relays_for_nobody_gives_no_slot_to_who_asks(tmp_path):
    alone = CONFIG.model_copy(update={"relay_for_others": False})
    async with (
        swarm_peer(tmp_path, "first", config=alone) as first,
        swarm_peer(tmp_path, "second", first) as second,
    ):
        assert not first.relays
        assert first.reach is Reach.DIRECT
        with pytest.raises(PeerUnreachable, match="no room to relay for us"):
            await reserve(second.daemon, first.peer_id, timeout_s=10)
        await reserve(first.daemon, second.peer_id, timeout_s=10)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "goes dark"])
async def test_outbound_only_peer_is_reached_over_another_relay_when_one(tmp_path, end):
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(swarm_peer(tmp_path, "one"))
        two = await stack.enter_async_context(swarm_peer(tmp_path, "two", one))
        home = await stack.enter_async_context(
            swarm_peer(tmp_path, "home", one, two, config=OUTBOUND)
        )
        caller = await stack.enter_async_context(swarm_peer(tmp_path, "caller", one, two))
        there = await stack.enter_async_context(node_of(home))
        here = await stack.enter_async_context(node_of(caller))
        assert not home.relays
        await eventually(lambda: home.reach is Reach.RELAYED, within_s=START_LIMIT_S)
        await eventually(lambda: home.num_relays == 2, within_s=START_LIMIT_S)

        circuits = tuple(filter(is_circuit, home.announce_addresses()))
        assert {relay_of(address) for address in circuits} == {one.peer_id, two.peer_id}
        await here.links.connect(home.peer_id, circuits)
        (link,) = here.links.neighbours.open_links()
        assert link.path is LinkPath.RELAYED
        assert link.relay in (one.peer_id, two.peer_id)
        # More than libp2p's own relays let through.
        here.links.send(home.peer_id, step(1 << 20))
        await eventually(lambda: there.got, within_s=30)

        connections = await caller.daemon.connections()
        (address,) = filter(is_circuit, connections[home.peer_id])
        relay = {peer.peer_id: peer for peer in (one, two)}[relay_of(address)]
        relay.daemon.child.send_signal(end)
        await eventually(lambda: here.lost, within_s=30)
        await eventually(lambda: home.num_relays == 1, within_s=30)
        await here.links.connect(home.peer_id, circuits)
        here.links.send(home.peer_id, step(1 << 20, 1))
        await eventually(lambda: len(there.got) == 2, within_s=30)
        assert bytes(there.got[1][1].payload) == bytes(step(1 << 20, 1).payload)
        await asyncio.sleep(0)
