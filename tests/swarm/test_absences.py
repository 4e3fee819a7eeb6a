"""A stage that cannot be reached is left out of routes just as long as that is so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState
from engine.node.absences import Absences
from engine.swarm.announcer import Announcer
from engine.swarm.directory import Directory
from engine.swarm.identity import load_or_create
from engine.swarm.links import Links
from engine.swarm.memory_transport import MemoryNetwork
from tests.support.living_swarm import CLOCK, MEMBERSHIP, QUICK, Board, BoardPeer
from tests.support.swarm import eventually

SELDOM = QUICK.model_copy(update={"announce_refresh_s": 60.0, "announce_expiry_s": 120.0})
SIZE = "tiny@0", 4


@dataclass(slots=True)
class Member:
    """One that announces a stage, and sees those of the others."""

    place: BoardPeer
    links: Links
    announcer: Announcer
    directory: Directory

    def announce(self, free_tokens: int = 100) -> None:
        self.announcer.update(
            StageInfo(
                self.place.peer_id, Span(0, 4), StageState.ONLINE, free_tokens, 5.0, (), "test"
            )
        )

    def sees(self, other: Member) -> StageInfo | None:
        return self.directory.snapshot().stage(other.place.peer_id)


@dataclass(slots=True)
class Trio:
    """One that watches, one that will be lost, and a third to whom the way stays open."""

    network: MemoryNetwork
    watcher: Member
    lost: Member
    third: Member

    @property
    def ends(self) -> tuple[str, str]:
        return self.watcher.place.peer_id, self.lost.place.peer_id


@pytest.fixture
async def trio(tmp_path: Path) -> AsyncIterator[Trio]:
    network, board = MemoryNetwork(), Board()
    members = [member(network, board, tmp_path / name) for name in ("one", "two", "three")]
    trio = Trio(network, *members)
    for each in members:
        await each.links.start()
    trio.watcher.directory.start()
    watching = asyncio.create_task(Absences(trio.watcher.links, trio.watcher.directory).watch())
    trio.lost.announce()
    await eventually(lambda: trio.watcher.sees(trio.lost))
    for other in (trio.lost, trio.third):
        await trio.watcher.links.connect(other.place.peer_id)
    yield trio
    watching.cancel()
    for each in members:
        await each.announcer.withdraw()
        await each.directory.stop()
        await each.links.stop()
    await network.stop()


def member(network: MemoryNetwork, board: Board, key: Path) -> Member:
    identity = load_or_create(key)
    public_key = identity.signing_key.get_public_key().to_bytes()
    place = BoardPeer(identity.peer_id, board.dht(b"[owner:" + public_key + b"]"))
    links = Links(network.transport(identity.peer_id), QUICK, CLOCK, MEMBERSHIP)
    announcer = Announcer(place, SELDOM, CLOCK, MEMBERSHIP, SIZE[0], links.neighbours.one_way_s)
    return Member(place, links, announcer, Directory(place, QUICK, CLOCK, MEMBERSHIP, *SIZE))


def asked_in_vain(trio: Trio) -> Callable[[], bool]:
    """Whether the watcher has tried the lost one since, and failed."""
    neighbour = trio.watcher.links.neighbours.of(trio.lost.place.peer_id)
    return lambda: neighbour.failures > 0


@pytest.mark.parametrize("comes_back", ["to the watcher", "because the watcher asks"])
async def test_stage_that_can_be_reached_again_is_used_without_a_new_announcement(
    trio: Trio, comes_back: str
) -> None:
    trio.network.cut(*trio.ends)
    await eventually(lambda: trio.watcher.sees(trio.lost) is None)
    trio.network.heal(*trio.ends)
    if comes_back == "to the watcher":
        await trio.lost.links.connect(trio.watcher.place.peer_id)
    else:
        await trio.watcher.links.connect(trio.lost.place.peer_id)
    await eventually(lambda: trio.watcher.sees(trio.lost))


async def test_what_a_stage_says_while_it_is_looked_for_counts(trio: Trio) -> None:
    failed = asked_in_vain(trio)
    trio.network.delay(*trio.ends, 0.5)  # so that looking takes a while
    trio.network.kill(trio.lost.place.peer_id)
    trio.lost.announce(free_tokens=7)
    await eventually(lambda: (seen := trio.watcher.sees(trio.lost)) and seen.kv_free_tokens == 7)
    assert not failed()
    await eventually(failed)
    await trio.watcher.directory.refresh()
    assert trio.watcher.sees(trio.lost) is not None
