from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app import autostart

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the entry is a file on Linux alone"
)


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "autostart" / "shoal.desktop"


def test_it_is_off_until_chosen_and_can_be_taken_back(entry: Path) -> None:
    assert not autostart.is_on()
    autostart.turn(on=True)
    assert autostart.is_on()
    assert f"\nExec={sys.executable} -m app" in entry.read_text()
    assert f"\nTryExec={sys.executable}\n" in entry.read_text()
    autostart.turn(on=False)
    assert not entry.exists()
    autostart.turn(on=False)


@pytest.mark.parametrize("line", ["Hidden=true", "X-GNOME-Autostart-enabled=false"])
def test_what_the_desktop_turns_off_is_off(entry: Path, line: str) -> None:
    autostart.turn(on=True)
    kept = [old for old in entry.read_text().splitlines() if "enabled" not in old]
    entry.write_text("\n".join([*kept, line]))
    assert not autostart.is_on()


def test_a_damaged_entry_counts_as_off(entry: Path) -> None:
    entry.parent.mkdir()
    entry.write_bytes(b"\xff\xfe no entry")
    assert not autostart.is_on()
