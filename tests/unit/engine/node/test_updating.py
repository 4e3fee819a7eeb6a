"""New versions as the engine learns of them and fetches them, from a real place and in real processes."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.config import Config
from engine.core.clock import SystemClock
from engine.localapi.installation import Installation
from engine.localapi.running import Home
from engine.localapi.updates import UpdateStep
from engine.node.updating import Updating
from tests.support.update_site import UpdateSite

pytestmark = pytest.mark.skipif(
    platform.machine().lower() != "x86_64", reason="the site publishes for this machine alone"
)


class House:
    """As much of a node as updates need; its line can be held."""

    def __init__(self, site: UpdateSite) -> None:
        self.move_to(site)
        self.line = SimpleNamespace(download=self._take)
        self.held: list[asyncio.Event] | None = None
        """One for each who waits for the line, in their order."""

    def move_to(self, site: UpdateSite) -> None:
        self.config = Config.model_validate({"updates": {"url": site.url, "key": site.key}})

    def tell(self) -> None:
        """Nobody watches."""

    async def _take(self, num_bytes: int) -> int:
        if self.held is not None:
            turn = asyncio.Event()
            self.held.append(turn)
            await turn.wait()
        return 1 << 30


@pytest.fixture
def site(tmp_path: Path) -> Iterator[UpdateSite]:
    with UpdateSite(tmp_path) as site:
        yield site


@pytest.fixture
def house(site: UpdateSite) -> House:
    return House(site)


@pytest.fixture
def updating(tmp_path: Path, house: House) -> Updating:
    home = Home.under(tmp_path / "home")
    return Updating(home, house, Installation(package="run"), SystemClock())  # type: ignore[arg-type]


async def until(updating: Updating, step: UpdateStep) -> None:
    async with asyncio.timeout(60):
        while updating.info.step is not step:
            assert not updating.info.problem
            await asyncio.sleep(0.02)


async def waiting(house: House, count: int) -> list[asyncio.Event]:
    async with asyncio.timeout(60):
        while house.held is None or len(house.held) < count:
            await asyncio.sleep(0.02)
    return house.held


async def test_a_list_that_comes_while_a_version_is_fetched_leaves_that_alone(
    site: UpdateSite, house: House, updating: Updating
) -> None:
    site.publish("7.0.0", b"#!/bin/sh")
    await updating.check()
    house.held = []
    looking = asyncio.create_task(updating.check())
    await waiting(house, 1)
    assert (await updating.install()).step is UpdateStep.FETCHING
    site.publish("8.0.0", b"#!/bin/sh")
    (first, *_) = await waiting(house, 2)
    first.set()
    found = await looking
    assert (found.step, found.version) == (UpdateStep.FETCHING, "7.0.0")
    assert (await updating.install()).step is UpdateStep.FETCHING
    waits, house.held = house.held, None
    for turn in waits:
        turn.set()
    async with asyncio.timeout(60):
        while updating.info.step is UpdateStep.FETCHING:
            await asyncio.sleep(0.02)
    assert (updating.info.step, updating.info.version) == (UpdateStep.READY, "7.0.0")


async def test_a_newer_list_makes_nobody_install_the_older_package(
    site: UpdateSite, updating: Updating
) -> None:
    site.publish("7.0.0", b"#!/bin/sh")
    await updating.install()
    await until(updating, UpdateStep.READY)
    assert "shoal-7.0.0" in updating.info.command
    assert updating.info.sha256 == sha256(Path(updating.info.command).read_bytes()).hexdigest()
    assert (await updating.check()).command
    site.publish("8.0.0", b"#!/bin/sh")
    found = await updating.check()
    assert (found.step, found.version, found.command) == (UpdateStep.AVAILABLE, "8.0.0", "")


async def test_a_list_under_another_key_is_not_held_against_what_was_seen_before(
    site: UpdateSite, house: House, updating: Updating, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    with UpdateSite(tmp_path / "other") as other:
        other.publish("7.0.0", b"#!/bin/sh")
        site.publish("7.0.0", b"#!/bin/sh")
        assert (await updating.check()).version == "7.0.0"
        house.move_to(other)
        assert (await updating.check()).problem == ""
