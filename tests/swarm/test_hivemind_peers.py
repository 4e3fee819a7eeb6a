"""Links between real peers, each in a process of its own, over loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from engine.config import SwarmConfig
from engine.core.clock import SystemClock
from engine.core.errors import ConfigError, PeerUnreachable, StageRefused
from engine.core.ids import PeerId, SessionId
from engine.protocol.frames import Dtype, Frame, Kind
from engine.protocol.rows import Row
from engine.swarm.addresses import split_peer
from engine.swarm.handshake import NOT_A_MEMBER, Membership
from engine.swarm.hivemind_transport import PROTOCOL, HivemindTransport
from engine.swarm.links import Links
from engine.swarm.peer import LOOPBACK, SwarmPeer
from tests.support.reading import read_exactly
from tests.support.swarm import PUBLIC, Node, eventually

CONFIG = SwarmConfig(heartbeat_s=0.3, dead_after_s=5.0)
BUSY_S = 3.0
"""What a busy machine may add to a measured time."""
START_LIMIT_S = 60.0
"""Importing torch takes seconds on a busy machine."""


class PeerProcess:
    def __init__(self, process, ready):
        self.process = process
        self.peer = PeerId(ready["peer"])
        self.bootstrap = tuple(ready["addresses"])
        self.addresses = tuple(split_peer(address)[0] for address in ready["addresses"])
        self.p2pd = ready["p2pd"]


@asynccontextmanager
async def peer_process(tmp_path, *arguments):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.swarm_process",
        "--identity",
        str(tmp_path / f"remote-{time.monotonic_ns()}.key"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_LIMIT_S)
        yield PeerProcess(process, json.loads(line))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def local_peer(tmp_path, initial_peers=(), name="local"):
    peer = await SwarmPeer.start(tmp_path / f"{name}.key", initial_peers, CONFIG, listen=LOOPBACK)
    try:
        yield peer
    finally:
        await peer.stop()


@asynccontextmanager
async def local_node(peer, membership=PUBLIC):
    links = Links(HivemindTransport(peer, CONFIG), CONFIG, SystemClock(), membership)
    await links.start()
    try:
        yield Node(links)
    finally:
        await links.stop()


def step(payload_bytes=0):
    row, ids = Row(SessionId(1), 0, 1), np.zeros(1, np.int32)
    if not payload_bytes:
        return Frame(Kind.STEP, b"", (row,), ids)
    return Frame(Kind.STEP, b"\7" * payload_bytes, (row,), ids, Dtype.FLOAT32, payload_bytes // 4)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


async def test_peer_killed_without_warning_is_noticed_and_leaves_no_p2pd(tmp_path):
    async with peer_process(tmp_path) as remote, local_peer(tmp_path, remote.bootstrap) as peer:
        async with local_node(peer) as node:
            node.links.send(remote.peer, step(3_000_000))
            await eventually(lambda: node.got)
            assert node.got[0][0] == remote.peer
            assert node.links.neighbours.rtt_s(remote.peer) < BUSY_S
            assert abs(node.links.neighbours.clock_offset_s()) < BUSY_S
            assert abs(peer.clock_offset_s) < BUSY_S
            assert is_running(remote.p2pd)

            os.kill(remote.process.pid, signal.SIGKILL)
            await eventually(lambda: node.lost, within_s=4)  # at once: silence takes longer
            await eventually(lambda: not is_running(remote.p2pd))
            with pytest.raises(PeerUnreachable):
                await node.links.connect(remote.peer)
            with pytest.raises(PeerUnreachable):
                node.links.send(remote.peer, step())


async def test_peer_that_stands_still_is_noticed(tmp_path):
    async with peer_process(tmp_path) as remote, local_peer(tmp_path, remote.bootstrap) as peer:
        async with local_node(peer) as node:
            node.links.send(remote.peer, step())
            await eventually(lambda: node.got)
            os.kill(remote.process.pid, signal.SIGSTOP)
            try:
                await eventually(lambda: node.lost)
                assert "silent" in node.lost[0][1]
            finally:
                os.kill(remote.process.pid, signal.SIGCONT)


async def test_wrong_swarm_key_is_refused_over_libp2p(tmp_path):
    async with local_peer(tmp_path, name="one") as one, local_peer(tmp_path, name="two") as two:
        async with (
            local_node(one, Membership("swarm-a", b"k" * 32)),
            local_node(two, Membership("swarm-a", b"x" * 32)) as stranger,
        ):
            with pytest.raises(StageRefused, match=NOT_A_MEMBER):
                await stranger.links.connect(one.peer_id, one.announce_addresses())


async def test_peers_find_each_other_through_a_third_without_addresses(tmp_path):
    async with (
        local_peer(tmp_path, name="boot") as boot,
        local_peer(tmp_path, boot.addresses(), "one") as one,
        local_peer(tmp_path, boot.addresses(), "two") as two,
        local_node(one) as node_one,
        local_node(two) as node_two,
    ):
        node_one.links.send(two.peer_id, step(100_000))
        await eventually(lambda: node_two.got)
        assert len(node_two.got[0][1].payload) == 100_000


async def test_addresses_alone_are_enough_to_link(tmp_path):
    async with local_peer(tmp_path, name="one") as one, local_peer(tmp_path, name="two") as two:
        async with local_node(one) as node_one, local_node(two):
            with pytest.raises(PeerUnreachable, match="cannot be reached"):
                await node_one.links.connect(two.peer_id)
            await node_one.links.connect(two.peer_id, two.announce_addresses())


async def test_random_bytes_over_libp2p_drop_the_peer(tmp_path):
    async with local_peer(tmp_path, name="one") as one, local_peer(tmp_path, name="two") as two:
        async with local_node(one) as node:
            await two.connect(one.peer_id, one.announce_addresses())
            transport = HivemindTransport(two, CONFIG)
            stream = await transport.open(one.peer_id)
            await stream.write(b"\xde\xad\xbe\xef" * 64)
            with pytest.raises(PeerUnreachable):
                await read_exactly(stream, 1)
            stream.close()
            assert node.links.gate.violations == 1


async def reach(node, peer):
    """Link to a peer that was away: libp2p waits a while after a dial that failed."""
    async with asyncio.timeout(30):
        while True:
            try:
                await node.links.connect(peer.peer_id, peer.announce_addresses())
            except PeerUnreachable:
                await asyncio.sleep(0.2)
            else:
                return


async def test_dead_daemon_is_noticed_and_the_peer_starts_anew_at_the_same_address(tmp_path):
    async with local_peer(tmp_path, name="one") as one, local_peer(tmp_path, name="two") as two:
        async with local_node(one) as node_one, local_node(two) as node_two:
            where = two.addresses()
            await node_one.links.connect(two.peer_id, two.announce_addresses())
            os.kill(two.daemon.child.pid, signal.SIGKILL)
            await asyncio.wait_for(two.wait_dead(), 4)  # at once: silence takes longer
            await eventually(lambda: node_one.lost, within_s=4)
            with pytest.raises(PeerUnreachable):  # a sentence, and no hanging
                await asyncio.wait_for(node_two.links.connect(one.peer_id), 15)

            await two.restart()
            assert two.addresses() == where
            await reach(node_one, two)
            node_one.links.send(two.peer_id, step())
            await eventually(lambda: node_two.got)


async def test_peer_that_starts_anew_without_its_bootstrap_waits_for_it(tmp_path):
    async with local_peer(tmp_path, name="boot") as boot:
        async with local_peer(tmp_path, boot.addresses(), "one") as one:
            await boot.stop()
            await one.restart()
            assert one.neighbours == 0
            assert one.addresses()


async def test_bootstrap_that_does_not_answer_gives_a_sentence(tmp_path):
    gone = "/ip4/127.0.0.1/tcp/1/p2p/QmSynGbBny7aT8FHraxczBL6Si93eK7hgfsKz36DVSfKkr"
    async with asyncio.timeout(CONFIG.open_timeout_s + 20):
        with pytest.raises(
            PeerUnreachable, match=r"None of the swarm's bootstrap addresses answer"
        ):
            await SwarmPeer.start(tmp_path / "key", (gone,), CONFIG, listen=LOOPBACK)


async def test_solo_peer_listens_on_this_machine_alone(tmp_path):
    peer = await SwarmPeer.start(tmp_path / "key")
    try:
        assert peer.addresses()
        assert all(address.startswith("/ip4/127.0.0.1/tcp/") for address in peer.addresses())
        assert peer.neighbours == 0
    finally:
        await peer.stop()
        await peer.stop()


async def test_port_that_is_taken_gives_a_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="free to listen on"):
            await SwarmPeer.start(tmp_path / "key", listen=(f"/ip4/127.0.0.1/tcp/{port}",))


async def test_protocol_name_is_stable():
    assert PROTOCOL == "shoal/frames"  # other versions must find it
