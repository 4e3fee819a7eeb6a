from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app import invite_links

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the entries are files on Linux alone"
)
LINK = "shoal://v1/abc"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def files(places: Path) -> list[str]:
    return sorted(path.name for path in places.rglob("*") if path.is_file())


def gio(*words: str) -> str:
    if shutil.which("gio") is None:
        pytest.skip("needs gio (Debian package libglib2.0-bin)")
    return subprocess.run(["gio", *words], check=True, capture_output=True, text=True).stdout


def test_nothing_is_written_until_chosen_and_all_can_be_taken_back(places: Path) -> None:
    assert not invite_links.is_on()
    assert files(places) == []
    invite_links.turn(on=True)
    assert invite_links.is_on()
    entry = (places / "data" / "applications" / invite_links.ENTRY).read_text()
    assert f"Exec={sys.executable} -m app %u\n" in entry
    assert "MimeType=x-scheme-handler/shoal;application/x-shoal-invite;\n" in entry
    invite_links.turn(on=False)
    assert not invite_links.is_on()
    assert invite_links.ENTRY not in files(places)
    assert "shoal.xml" not in files(places)
    assert "shoal" not in (places / "config" / "mimeapps.list").read_text()
    invite_links.turn(on=False)


def test_other_choices_of_the_person_stay_as_they_are(places: Path) -> None:
    choices = places / "config" / "mimeapps.list"
    choices.parent.mkdir()
    before = (
        "# mine\n[Added Associations]\nx-scheme-handler/shoal=other.desktop;\n\n"
        "[Default Applications]\ntext/html=firefox.desktop;\n"
    )
    choices.write_text(before)
    invite_links.turn(on=True)
    assert set(before.splitlines()) < set(choices.read_text().splitlines())
    invite_links.turn(on=False)
    assert choices.read_text() == before


def test_what_the_desktop_leads_elsewhere_is_off_and_stays_there(places: Path) -> None:
    invite_links.turn(on=True)
    choices = places / "config" / "mimeapps.list"
    choices.write_text(choices.read_text().replace(invite_links.ENTRY, "other.desktop"))
    assert not invite_links.is_on()
    invite_links.turn(on=False)
    assert "x-scheme-handler/shoal=other.desktop" in choices.read_text()


def test_a_click_on_a_link_starts_shoal_with_it(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = places / "told"
    program = places / 'a "strange" folder' / "python"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}.part\nmv {told}.part {told}\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    invite_links.turn(on=True)
    assert invite_links.ENTRY in gio("mime", "x-scheme-handler/shoal")
    gio("open", LINK)
    limit_s = time.monotonic() + 20
    while not told.exists():
        assert time.monotonic() < limit_s, "nothing was started"
        time.sleep(0.05)
    assert told.read_text().split() == ["-m", "app", LINK]


def test_an_invites_file_is_known_by_its_name(places: Path) -> None:
    if shutil.which("update-mime-database") is None:
        pytest.skip("needs update-mime-database (Debian package shared-mime-info)")
    invite_links.turn(on=True)
    invite = places / "friends.shoal"
    invite.write_text(LINK)
    assert invite_links.TYPES[1] in gio("info", "-a", "standard::content-type", str(invite))
    assert invite_links.ENTRY in gio("mime", invite_links.TYPES[1])


@pytest.fixture
def package(places: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of a package that says of itself that it opens invites."""
    entry = Path(__file__).parents[3] / "installers" / "linux" / "shoal.desktop"
    folder = places / "share" / "applications"
    folder.mkdir(parents=True)
    (folder / "shoal.desktop").write_text(
        entry.read_text("utf-8").replace("@SHOAL@", sys.executable)
    )
    monkeypatch.setenv("XDG_DATA_DIRS", str(places / "share"))
    if shutil.which("update-desktop-database"):
        subprocess.run(["update-desktop-database", str(folder)], check=True)
    return folder / "shoal.desktop"


def test_a_package_opens_invites_until_that_is_turned_off_and_again_when_turned_on(
    places: Path, package: Path
) -> None:
    link = invite_links.TYPES[0]
    assert invite_links.is_on()
    assert "shoal.desktop" in gio("mime", link)
    invite_links.turn(on=False)
    assert not invite_links.is_on()
    assert "shoal.desktop" not in gio("mime", link)
    invite_links.turn(on=True)
    assert invite_links.is_on()
    assert "shoal.desktop" in gio("mime", link)
    assert invite_links.ENTRY not in files(places)  # the package's entry is enough
    choices = places / "config" / "mimeapps.list"
    choices.write_text(f"[Default Applications]\n{link}=other.desktop\n")
    assert not invite_links.is_on()
    choices.unlink()
    package.write_text(package.read_text("utf-8").replace(sys.executable, "/opt/other/shoal"))
    assert not invite_links.is_on()  # another Shoal's


def test_turning_a_package_off_leaves_what_else_the_person_has_set_aside(
    places: Path, package: Path
) -> None:
    choices = places / "config" / "mimeapps.list"
    choices.parent.mkdir()
    aside = f"[Removed Associations]\n{invite_links.TYPES[0]}=other.desktop;\n"
    choices.write_text(aside)
    invite_links.turn(on=False)
    assert not invite_links.is_on()
    invite_links.turn(on=True)
    assert aside in choices.read_text()
