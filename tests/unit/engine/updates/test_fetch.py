"""Fetching what a list names, over HTTP and in a process of its own, as the engine does."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.errors import DiskFull, UpdateRefused, UpdateUnavailable
from engine.models.storage import NO_LIMITS, FetchLimits
from engine.updates.fetch import fetch_list, fetch_package
from engine.updates.manifest import opened
from tests.support.update_site import UpdateSite

PACKAGE = b"#!/bin/sh\n" + bytes(range(256)) * 1000


@pytest.fixture
def site(tmp_path: Path):
    with UpdateSite(tmp_path) as site:
        yield site


async def at_once(num_bytes: int) -> int:
    return 1 << 30


async def fetched(site: UpdateSite, to: Path, limits=NO_LIMITS, take=at_once):
    data = await fetch_list(site.url, to.parent, limits, at_once)
    (file,) = opened(data, [site.key], site.url).files
    place = site.url.replace("shoal.json", file.url)
    await fetch_package(place, to, file, limits, lambda _: None, take)


async def test_a_download_that_was_cut_goes_on_where_it_was_within_the_lines_limits(site, tmp_path):
    site.publish("0.2.0", PACKAGE)
    site.cut_after["shoal-0.2.0-x86_64.run"] = 100_000
    took = 0

    async def take(num_bytes: int) -> int:
        nonlocal took
        took += num_bytes
        return 20_000

    await fetched(site, tmp_path / "new" / "package.run", take=take)
    assert (tmp_path / "new" / "package.run").read_bytes() == PACKAGE
    assert site.ranges == ["bytes=100000-"]
    assert len(PACKAGE) - 20_000 <= took <= len(PACKAGE)


async def test_a_package_that_was_exchanged_is_refused_and_deleted(site, tmp_path):
    file = site.publish("0.2.0", PACKAGE)
    file.write_bytes(PACKAGE.replace(b"sh", b"sx"))
    with pytest.raises(UpdateRefused, match="is not the one that was signed, so it was deleted"):
        await fetched(site, tmp_path / "new" / "package.run")
    assert not list((tmp_path / "new").iterdir())


async def test_what_is_not_there_or_has_no_room_is_said_in_a_sentence(site, tmp_path):
    with pytest.raises(UpdateUnavailable, match=r"cannot be fetched now \(HTTP 404\)"):
        await fetched(site, tmp_path / "package.run")
    site.publish("0.2.0", PACKAGE)
    with pytest.raises(DiskFull, match=r"needs [\d,]+ MB more than the disk"):
        await fetched(site, tmp_path / "package.run", FetchLimits(disk_free_bytes=1 << 60))
