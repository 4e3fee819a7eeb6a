from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from app.trial import FAILED_EXIT, Trial
from engine.localapi import versions
from engine.localapi.installation import Installation


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.setattr("app.trial.HEALTHY_AFTER_MS", 1)
    versions.adopt(tmp_path, "0.1.0")
    versions.stage(tmp_path, "0.2.0")
    return Installation(package="run", root=tmp_path, trial="0.2.0")


def test_new_version_whose_engine_answers_is_kept(
    qtbot: QtBot, tried: Installation, tmp_path: Path
) -> None:
    trial = Trial(tried)
    trial.works()
    qtbot.waitUntil(lambda: versions.read(tmp_path).current == "0.2.0")
    trial.fails()  # later crashes are like those of any other version


def test_new_version_whose_engine_crashes_ends_at_once(
    qtbot: QtBot, tried: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(QCoreApplication, "exit", codes.append)
    trial = Trial(tried)
    trial.fails()
    trial.fails()
    assert codes == [FAILED_EXIT]


def test_version_that_runs_again_forgets_the_failed_one_once_its_engine_answers(
    qtbot: QtBot, tried: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "versions.json").write_text('{"current": "0.1.0", "failed": "0.2.0"}')
    monkeypatch.setattr(QCoreApplication, "exit", pytest.fail)
    trial = Trial(Installation(package="run", root=tmp_path, rolled_back_from="0.2.0"))
    trial.fails()  # there is no other version to go back to
    trial.works()
    qtbot.waitUntil(lambda: versions.read(tmp_path).failed == "")


def test_version_that_is_not_tried_says_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    trial = Trial(Installation(package="run", root=tmp_path))
    trial.works()
    trial.fails()
    assert not list(tmp_path.iterdir())


def test_environment_says_how_shoal_was_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SHOAL_VERSIONS", "SHOAL_PACKAGE", "SHOAL_TRIAL", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert Installation.from_environment() == Installation()
    monkeypatch.setenv("SHOAL_PACKAGE", "deb")
    assert Installation.from_environment().package == "deb"
    command = Installation.from_environment().command(tmp_path / "two words.deb")
    assert command == f"sudo apt install '{tmp_path}/two words.deb'"
    monkeypatch.setenv("SHOAL_PACKAGE", "setup")
    monkeypatch.setenv("WSL_DISTRO_NAME", "Shoal")
    found = Installation.from_environment()
    assert found.command(Path("/home/shoal/new.exe")) == r"\\wsl.localhost\Shoal\home\shoal\new.exe"
    monkeypatch.setenv("SHOAL_PACKAGE", "sausage")
    monkeypatch.setenv("SHOAL_VERSIONS", str(tmp_path))
    found = Installation.from_environment()
    assert (found.package, found.root) == ("run", tmp_path)
