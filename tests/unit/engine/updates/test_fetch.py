"""Fetching what a list names, over HTTP and in a process of its own, as the engine does."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.errors import DiskFull, UpdateUnavailable
from engine.models.storage import NO_LIMITS, FetchLimits
from engine.updates.fetch import fetch_list, fetch_package
from engine.updates.manifest import PackageFile, opened
from tests.support.fake_proxy import FakeProxy
from tests.support.small_disk import small_disk
from tests.support.update_site import UpdateSite

PACKAGE = b"#!/bin/sh\n" + bytes(range(256)) * 1000
ELSEWHERE = "http://updates.invalid/shoal.json"
"""A name that leads nowhere but through a proxy."""
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


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


async def test_what_is_not_there_or_has_no_room_is_said_in_a_sentence(site, tmp_path):
    with pytest.raises(UpdateUnavailable, match=r"cannot be fetched now \(HTTP 404\)"):
        await fetched(site, tmp_path / "package.run")
    site.publish("0.2.0", PACKAGE)
    with pytest.raises(DiskFull, match=r"needs [\d,]+ MB more than the disk"):
        await fetched(site, tmp_path / "package.run", FetchLimits(disk_free_bytes=1 << 60))


async def test_list_and_package_pass_the_proxy_that_the_settings_or_the_environment_name(
    site, tmp_path, monkeypatch
):
    site.publish("0.2.0", PACKAGE)
    with FakeProxy(int(site.url.split(":")[2].split("/")[0])) as proxy:
        data = await fetch_list(ELSEWHERE, tmp_path, FetchLimits(proxy=proxy.url), at_once)
        (file,) = opened(data, [site.key], ELSEWHERE).files
        monkeypatch.setenv("http_proxy", proxy.url)
        place, to = ELSEWHERE.replace("shoal.json", file.url), tmp_path / "package.run"
        await fetch_package(place, to, file, NO_LIMITS, lambda _: None, at_once)
    assert to.read_bytes() == PACKAGE
    assert proxy.hosts == ["updates.invalid"] * 2


async def test_no_network_and_a_proxy_that_is_gone_are_told_apart(site, tmp_path):
    nobody = "http://127.0.0.1:9/shoal.json"
    with pytest.raises(UpdateUnavailable) as without:
        await fetch_list(nobody, tmp_path, NO_LIMITS, at_once)
    assert f"{nobody} cannot be reached now (ConnectError); check the connection" in str(
        without.value
    )
    gone = FetchLimits(proxy="http://zoe:secret@127.0.0.1:9")
    with pytest.raises(UpdateUnavailable) as behind:
        await fetch_list(ELSEWHERE, tmp_path, gone, at_once)
    assert "cannot be reached now through the proxy http://127.0.0.1:9 (ConnectError)" in str(
        behind.value
    )
    assert "secret" not in str(behind.value)


async def test_a_disk_that_fills_up_meanwhile_or_takes_nothing_is_told_and_given_back(
    site, tmp_path
):
    site.publish("0.2.0", PACKAGE)
    with small_disk(tmp_path / "disk", "400k") as disk:
        to = disk.folder / "updates" / "package.run"

        async def fill(num_bytes: int) -> int:
            if not (disk.folder / "filler").exists():
                disk.fill()
            return 1 << 30

        with pytest.raises(
            DiskFull, match=r"The disk of .* is full, so the update was not fetched"
        ):
            await fetched(site, to, FetchLimits(disk_free_bytes=0), take=fill)
        assert not list(to.parent.iterdir())
        disk.free()
        disk.set_read_only(read_only=True)
        with pytest.raises(
            UpdateUnavailable, match=r"cannot be written to .*Read-only file system"
        ):
            await fetch_package(
                site.url,
                to,
                package_file(),
                FetchLimits(disk_free_bytes=0),
                lambda _: None,
                at_once,
            )
        disk.set_read_only(read_only=False)


def package_file() -> PackageFile:
    return PackageFile(kind="run", machine="x86_64", url="a.run", size_bytes=9, sha256="0" * 64)
