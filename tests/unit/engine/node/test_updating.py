"""New versions as the engine learns of them and fetches them, from a real place and in real processes."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.config import Config
from engine.core.clock import SystemClock
from engine.core.errors import UpdateError, UpdateRefused
from engine.localapi.installation import Installation
from engine.localapi.running import Home
from engine.localapi.updates import UpdateStep
from engine.node import updating as updating_module
from engine.node.updating import Updating
from tests.support.update_site import UpdateSite

pytestmark = pytest.mark.skipif(
    platform.machine().lower() != "x86_64", reason="the site publishes for this machine alone"
)


class House:
    """As much of a node as updates need; its line can be held."""

    is_silent = False

    def __init__(self, site: UpdateSite) -> None:
        self.move_to(site)
        self.line = SimpleNamespace(download=self._take)
        self.held: list[asyncio.Event] | None = None
        """One for each who waits for the line, in their order."""

    def move_to(self, site: UpdateSite) -> None:
        self.set(url=site.url, key=site.key)

    def set(self, **updates: object) -> None:
        self.config = Config.model_validate({"updates": updates})

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


async def refused(updating: Updating, wanted: str) -> None:
    """What is at the place is refused with a sentence, which the status shows as well."""
    before = updating.info
    with pytest.raises(UpdateRefused, match=wanted) as told:
        await updating.check()
    after = updating.info
    assert after.problem == str(told.value)
    assert (after.step, after.version) == (before.step, before.version)


async def test_lists_that_were_altered_replayed_or_lead_back_are_refused_and_change_nothing(
    site: UpdateSite, updating: Updating
) -> None:
    list_file = site.folder / "site" / "shoal.json"
    site.publish("7.0.0", b"#!/bin/sh")
    old = list_file.read_bytes()
    site.publish("7.0.1", b"#!/bin/sh")
    assert (await updating.check()).version == "7.0.1"
    list_file.write_bytes(old)
    await refused(updating, "was signed on .* a newer one of .* has been seen, so it was refused")
    list_file.write_bytes(old.replace(b"7.0.0", b"8.0.0"))
    await refused(updating, "does not carry the signature of those who publish Shoal")
    site.publish("0.0.9", b"#!/bin/sh")
    await refused(updating, r"offers Shoal 0\.0\.9, which is older than .* that runs here")
    site.publish("7.0.2", b"#!/bin/sh")
    found = await updating.check()
    assert (found.step, found.version, found.problem) == (UpdateStep.AVAILABLE, "7.0.2", "")


async def test_a_package_that_was_exchanged_is_refused_and_can_be_fetched_later(
    site: UpdateSite, updating: Updating, tmp_path: Path
) -> None:
    file = site.publish("7.0.0", b"#!/bin/sh\nexit 0\n")
    file.write_bytes(b"#!/bin/sh\nexit 1\n")
    await updating.install()
    async with asyncio.timeout(60):
        while not updating.info.problem:
            await asyncio.sleep(0.02)
    assert updating.info.step is UpdateStep.AVAILABLE
    assert "is not the one that was signed, so it was deleted" in updating.info.problem
    assert [*tmp_path.glob("home/**/shoal-*")] == []
    file.write_bytes(b"#!/bin/sh\nexit 0\n")
    await updating.install()
    await until(updating, UpdateStep.READY)


async def test_a_build_without_a_release_key_says_so_and_looks_where_the_settings_say(
    site: UpdateSite, house: House, updating: Updating
) -> None:
    house.set()
    assert updating.info.step is UpdateStep.NOWHERE
    with pytest.raises(UpdateError, match="because this build has no release key; get them where"):
        await updating.check()
    house.set(url=site.url)
    with pytest.raises(UpdateError, match=r"no release key.* let updates\.url and updates\.key"):
        await updating.check()
    house.move_to(site)
    site.publish("7.0.0", b"#!/bin/sh")
    assert (await updating.check()).version == "7.0.0"


@pytest.mark.parametrize("looks", [True, False])
async def test_nobody_looks_by_itself_when_that_is_switched_off(
    looks: bool, site: UpdateSite, house: House, updating: Updating, monkeypatch: Any
) -> None:
    monkeypatch.setattr(updating_module, "_FIRST_LOOK_S", 0.0)
    site.publish("7.0.0", b"#!/bin/sh")
    house.set(url=site.url, key=site.key, check=looks)
    looking = asyncio.create_task(updating.run())
    if looks:
        await until(updating, UpdateStep.AVAILABLE)
    else:
        await asyncio.sleep(0.5)
        assert updating.info.step is UpdateStep.UNKNOWN
    looking.cancel()
    await asyncio.wait({looking})
