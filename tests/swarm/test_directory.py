"""Announcements over a real DHT on loopback: what members see, and what they refuse to see."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import AsyncExitStack

import pytest
from hivemind.dht.validation import DHTRecord

from engine.config import SwarmConfig
from engine.core.clock import SystemClock
from engine.core.errors import NoRoute, PeerUnreachable
from engine.core.plans import Span
from engine.core.protocol_window import ProtocolWindow
from engine.core.snapshot import StageInfo, StageState
from engine.node.absences import Absences
from engine.planner.routing import find_route
from engine.protocol.records import Announcement, encode, record_keys
from engine.swarm.announcer import Announcer
from engine.swarm.directory import Directory
from engine.swarm.handshake import Membership
from engine.swarm.hivemind_transport import HivemindTransport
from engine.swarm.links import Links
from engine.swarm.peer import LOOPBACK, SwarmPeer
from tests.support.swarm import eventually

CONFIG = SwarmConfig(announce_refresh_s=0.6, announce_expiry_s=5.0, snapshot_refresh_s=0.1)
LONG_LIVED = {"announce_refresh_s": 60.0, "announce_expiry_s": 120.0}
CLOCK = SystemClock()
MEMBERS = Membership("5" * 32, b"k" * 32)
MODEL, NUM_BLOCKS = "starter@0123456789ab", 40


def stage(peer: SwarmPeer, start=0, end=15, **fields) -> StageInfo:
    info = StageInfo(
        peer=peer.peer_id,
        span=Span(start, end),
        state=StageState.ONLINE,
        kv_free_tokens=1000,
        decode_tokens_per_s=5.0,
        addresses=peer.announce_addresses(),
        version="0.1.0",
        protocols=MEMBERS.protocols,
    )
    return dataclasses.replace(info, **fields)


@pytest.fixture
async def swarm(tmp_path):
    """Starts peers that know each other, and their announcers and directories."""
    async with AsyncExitStack() as stack:
        yield Swarm(tmp_path, stack)


class Swarm:
    def __init__(self, tmp_path, stack):
        self._tmp_path = tmp_path
        self._stack = stack
        self.boot = ()

    async def peer(self, name: str) -> SwarmPeer:
        peer = await SwarmPeer.start(
            self._tmp_path / f"{name}.key", self.boot, CONFIG, listen=LOOPBACK
        )
        self._stack.push_async_callback(peer.stop)
        self.boot = self.boot or peer.addresses()
        return peer

    def ends(self, stop) -> None:
        self._stack.push_async_callback(stop)

    def announcer(self, peer, membership=MEMBERS, config=CONFIG, link_s=dict) -> Announcer:
        announcer = Announcer(peer, config, CLOCK, membership, MODEL, link_s)
        self._stack.push_async_callback(announcer.withdraw)
        return announcer

    def directory(self, peer, membership=MEMBERS) -> Directory:
        directory = Directory(peer, CONFIG, CLOCK, membership, MODEL, NUM_BLOCKS)
        self._stack.push_async_callback(directory.stop)
        return directory


async def announce(announcer: Announcer, info: StageInfo) -> None:
    announcer.update(info)
    await asyncio.wait_for(announcer.published(), 30)


async def test_solo_node_sees_its_own_stage_come_change_and_go(swarm):
    peer = await swarm.peer("solo")
    announcer, directory = swarm.announcer(peer), swarm.directory(peer)
    seen = []
    directory.watch(seen.append)
    assert (await directory.refresh()).stages == ()

    await announce(announcer, stage(peer, 0, NUM_BLOCKS))
    snapshot = await directory.refresh()
    assert snapshot.stages == (stage(peer, 0, NUM_BLOCKS),)
    assert snapshot.peers_online == 0
    assert directory.snapshot() is snapshot

    await announce(announcer, stage(peer, 0, NUM_BLOCKS, state=StageState.DRAINING))
    assert (await directory.refresh()).stages[0].state is StageState.DRAINING

    await announcer.withdraw()
    assert (await directory.refresh()).stages == ()
    assert [len(snapshot.stages) for snapshot in seen] == [1, 1, 0]

    await announce(announcer, stage(peer, 0, NUM_BLOCKS))  # and back at once
    assert len((await directory.refresh()).stages) == 1


async def test_stage_whose_link_broke_and_that_does_not_answer_is_gone_until_it_speaks_again(
    swarm, tmp_path
):
    one, two, three = [await swarm.peer(name) for name in ("one", "two", "three")]
    links = [Links(HivemindTransport(p, CONFIG), CONFIG, CLOCK, MEMBERS) for p in (one, two, three)]
    for each in links:
        await each.start()
        swarm.ends(each.stop)
    announcer = swarm.announcer(two, config=CONFIG.model_copy(update=LONG_LIVED))
    await announce(announcer, stage(two))
    directory = swarm.directory(one)
    directory.start()
    watching = asyncio.create_task(Absences(links[0], directory).watch())
    await links[0].connect(two.peer_id, two.announce_addresses())
    await links[0].connect(three.peer_id, three.announce_addresses())
    await eventually(lambda: directory.snapshot().stages)

    await links[1].stop()
    await eventually(lambda: not directory.snapshot().stages)

    announcer.update(stage(two, kv_free_tokens=7))
    await eventually(lambda: directory.snapshot().stages)
    watching.cancel()


async def test_link_times_of_a_stage_are_seen_with_it(swarm):
    one, two = await swarm.peer("one"), await swarm.peer("two")
    times = {two.peer_id: 0.0213}
    await announce(swarm.announcer(one, link_s=lambda: times), stage(one, 20, 40))
    snapshot = await swarm.directory(two).refresh()
    assert snapshot.link_s == {one.peer_id: times}
    assert [seen.peer for seen in snapshot.stages] == [one.peer_id]


async def test_stages_of_several_peers_are_seen_by_all_and_expire_when_not_renewed(swarm):
    one, two = await swarm.peer("one"), await swarm.peer("two")
    announcer_one, announcer_two = swarm.announcer(one), swarm.announcer(two)
    directories = [swarm.directory(one), swarm.directory(two)]
    await announce(announcer_one, stage(one, 0, 20))
    await announce(announcer_two, stage(two, 20, 40))
    expected = {(one.peer_id, Span(0, 20)), (two.peer_id, Span(20, 40))}
    for directory in directories:
        directory.start()

    def all_see_all():
        snapshots = [directory.snapshot() for directory in directories]
        return all({(s.peer, s.span) for s in view.stages} == expected for view in snapshots)

    await eventually(all_see_all)
    assert directories[0].snapshot().peers_online == 1

    await asyncio.sleep(CONFIG.announce_expiry_s)  # refreshed meanwhile
    assert len(directories[0].snapshot().stages) == 2

    announcer_two._task.cancel()  # as when the node is killed: no leave record
    await eventually(lambda: len(directories[0].snapshot().stages) == 1)
    assert directories[0].snapshot().stages[0].peer == one.peer_id


async def test_stage_that_moves_is_seen_only_where_it_is(swarm):
    one, two = await swarm.peer("one"), await swarm.peer("two")
    announcer, directory = swarm.announcer(one), swarm.directory(two)
    for span in ((0, 10), (20, 30), (0, 40), (32, 40)):
        await announce(announcer, stage(one, *span))
        snapshot = await directory.refresh()
        assert [s.span for s in snapshot.stages] == [Span(*span)]
    assert snapshot.dropped_records == 0


async def test_private_announcements_are_not_found_without_the_key(swarm):
    one, two = await swarm.peer("one"), await swarm.peer("two")
    await announce(swarm.announcer(one), stage(one))
    for stranger in (Membership(MEMBERS.swarm_id), Membership(MEMBERS.swarm_id, b"x" * 32)):
        assert (await swarm.directory(two, stranger).refresh()).stages == ()


# Bad records


def key_of(info: StageInfo) -> str:
    return record_keys(MEMBERS.swarm_id, MODEL, info.span, MEMBERS.key)[0]


async def store(peer: SwarmPeer, info: StageInfo, *, key=None, data=None, **fields) -> None:
    now_s = CLOCK.unix_s()
    announcement = dataclasses.replace(Announcement(info, MODEL, now_s, now_s + 30), **fields)
    data = encode(announcement, MEMBERS.key) if data is None else data
    assert await peer.dht.store_many({key or key_of(info): (data, now_s + 30)})


async def test_record_that_names_another_peer_is_dropped_and_counted_once(swarm):
    alice, mallory = await swarm.peer("alice"), await swarm.peer("mallory")
    await store(mallory, stage(alice))  # signed by Mallory's own key
    directory = swarm.directory(alice)
    for _ in range(3):
        snapshot = await directory.refresh()
        assert snapshot.stages == ()
        assert snapshot.dropped_records == 1


async def test_record_forged_under_anothers_key_is_dropped_though_its_node_hands_it_out(swarm):
    alice, mallory = await swarm.peer("alice"), await swarm.peer("mallory")
    directory = swarm.directory(alice)
    await announce(swarm.announcer(alice), stage(alice))

    # Mallory's node does not check, keeps the forgery, and outlives Alice's own record.
    mallory._guard.validate = lambda record: True
    now_s = CLOCK.unix_s()
    forged = stage(alice, state=StageState.DRAINING, kv_free_tokens=0)
    data = encode(Announcement(forged, MODEL, now_s + 1, now_s + 30), MEMBERS.key)
    node, key = mallory.dht.node, key_of(forged)
    key_id = type(node.node_id).generate(source=key)
    serialise = node.protocol.serializer.dumps
    record = DHTRecord(
        key_id.to_bytes(), serialise(alice.dht.owner_subkey), serialise(data), now_s + 30
    )
    signature = mallory.identity.signing_key.sign(mallory._guard._serialize_record(record))
    signed = record.value + b"[signature:" + signature + b"]"
    assert node.protocol.storage.store(key_id, signed, now_s + 30, subkey=alice.dht.owner_subkey)
    assert (await mallory.dht.get_many((key,)))[key][alice.dht.owner_subkey][0] == data

    snapshot = await directory.refresh()
    assert snapshot.stages == (stage(alice),)
    assert snapshot.dropped_records >= 1
    # and an honest node does not take it in either
    accepted = await node.protocol.call_store(
        alice.daemon.peer_id, [key_id], [signed], [now_s + 30], subkeys=[alice.dht.owner_subkey]
    )
    assert accepted == [False]


async def test_bad_records_are_dropped_and_good_ones_beside_them_stay(swarm):
    alice, mallory = await swarm.peer("alice"), await swarm.peer("mallory")
    directory = swarm.directory(alice)
    await announce(swarm.announcer(alice), stage(alice, 0, 40))
    now_s = CLOCK.unix_s()
    all_bad = (
        {"model_id": "other@000000000000"},
        {"info": stage(mallory, next_span=Span(30, NUM_BLOCKS + 1))},
        {"unix_s": now_s + 3600, "expires_unix_s": now_s + 3630},
        {"expires_unix_s": now_s + 500},
        {"key": record_keys(MEMBERS.swarm_id, MODEL, Span(32, 40), MEMBERS.key)[0]},
        {"data": b"\xff" * 100},
        {"data": b"x" * 2000},
    )
    for count, bad in enumerate(all_bad, start=1):
        await store(mallory, **{"info": stage(mallory), **bad})
        snapshot = await directory.refresh()
        assert [s.peer for s in snapshot.stages] == [alice.peer_id], bad
        assert snapshot.dropped_records == count, bad


async def test_unsigned_and_oversized_records_are_not_taken_in(swarm):
    alice, mallory = await swarm.peer("alice"), await swarm.peer("mallory")
    mallory._guard.validate = lambda record: True
    protocol = mallory.dht.node.protocol
    key_id = type(mallory.dht.node.node_id).generate(source=key_of(stage(alice)))
    for subkey, value in ((b"nobody", b"x"), (b"[owner:ssh-rsa AAAA]", b"x"), (b"a", b"x" * 9000)):
        stored = await protocol.call_store(
            alice.daemon.peer_id, [key_id], [value], [CLOCK.unix_s() + 30], subkeys=[subkey]
        )
        assert stored == [False]
    assert alice.refused_records == 3


async def test_directory_without_a_network_keeps_what_has_not_expired(swarm):
    peer = await swarm.peer("solo")
    directory = swarm.directory(peer)
    await announce(swarm.announcer(peer), stage(peer))
    await directory.refresh()
    await peer.stop()
    with pytest.raises(PeerUnreachable):
        await directory.refresh()
    assert len(directory.snapshot().stages) == 1
    await asyncio.sleep(CONFIG.announce_expiry_s)
    with pytest.raises(PeerUnreachable):
        await directory.refresh()
    assert directory.snapshot().stages == ()


async def test_stages_of_other_protocols_are_left_out_and_counted(swarm):
    alice, bob, carol = [await swarm.peer(name) for name in ("alice", "bob", "carol")]
    now = dataclasses.replace(MEMBERS, protocols=ProtocolWindow(5, 6))
    windows = (ProtocolWindow(4, 5), ProtocolWindow(7, 8), ProtocolWindow(3, 4))
    for peer, window in zip((alice, bob, carol), windows, strict=True):
        announcer = swarm.announcer(peer, dataclasses.replace(MEMBERS, protocols=window))
        announcer.update(stage(peer))
        await announcer.published()
    seen = await swarm.directory(alice, now).refresh()
    assert [info.peer for info in seen.stages] == [alice.peer_id]
    assert (seen.stages_ahead, seen.stages_behind) == (1, 1)
    with pytest.raises(NoRoute, match=r"speaks a newer protocol than this .*, so update it"):
        find_route(seen)
