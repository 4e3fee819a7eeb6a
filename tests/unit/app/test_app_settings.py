"""The app's own settings: they hold at once, each by itself, and only when somebody chooses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app import autostart
from app.engine_link.api import Api
from app.engine_link.setup import SetupLink
from app.settings import Language, Settings
from app.store import Store
from app.windows.settings import APP
from app.windows.settings_app import AppPart
from app.wiring.settings import SettingsWiring
from engine.localapi.running import Home
from tests.support.desktop.language import speaking

pytestmark = [
    pytest.mark.qt_log_ignore("This plugin does not support", extend=True),
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="the entry is a file on Linux alone"
    ),
]


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "autostart" / "shoal.desktop"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(Home.under(tmp_path / "home"))


@pytest.fixture
def page(
    tmp_path: Path, settings: Settings, entry: Path, qtbot: QtBot, qapp: QCoreApplication
) -> Iterator[AppPart]:
    store = Store()
    home = Home.under(tmp_path / "home")
    wiring = SettingsWiring(store, SetupLink(Api(store), store), settings, home, store)
    wiring.bring_up()
    assert wiring.window is not None
    wiring.window.open_page(APP)
    yield wiring.window.app
    wiring.window.close()
    wiring.window.deleteLater()


def click(qtbot: QtBot, box: QWidget) -> None:
    qtbot.keyClick(box, Qt.Key.Key_Space)


def test_start_at_login_and_staying_in_the_tray_are_chosen_apart(
    page: AppPart, settings: Settings, qtbot: QtBot
) -> None:
    assert (autostart.is_on(), settings.stays_in_tray) == (False, True)
    click(qtbot, page.stays)
    assert (autostart.is_on(), settings.stays_in_tray) == (False, False)
    click(qtbot, page.autostart)
    assert (autostart.is_on(), settings.stays_in_tray) == (True, False)
    click(qtbot, page.stays)
    assert (autostart.is_on(), settings.stays_in_tray) == (True, True)
    click(qtbot, page.autostart)
    assert (autostart.is_on(), settings.stays_in_tray) == (False, True)


def test_start_at_login_stays_off_whatever_else_is_chosen(
    page: AppPart, entry: Path, qtbot: QtBot
) -> None:
    click(qtbot, page.stays)
    page.language_wanted.emit(Language.FRENCH)
    assert not page.autostart.isChecked()
    assert not entry.exists()


def test_what_the_desktop_has_turned_off_is_shown_as_off_and_not_written_again(
    tmp_path: Path, settings: Settings, entry: Path, qtbot: QtBot
) -> None:
    autostart.turn(on=True)
    entry.write_text(entry.read_text() + "Hidden=true\n")
    before = entry.read_bytes()
    for _ in range(2):  # as after an update
        store = Store()
        home = Home.under(tmp_path / "home")
        wiring = SettingsWiring(store, SetupLink(Api(store), store), settings, home, store)
        wiring.bring_up()
        assert wiring.window is not None
        assert not wiring.window.app.autostart.isChecked()
        wiring.window.close()
        wiring.window.deleteLater()
    assert entry.read_bytes() == before


def test_another_language_is_remembered_and_says_in_itself_when_it_holds(
    page: AppPart, settings: Settings
) -> None:
    assert settings.language is Language.SYSTEM
    page.language.setCurrentIndex(page.language.findText("Deutsch"))
    page.language.activated.emit(page.language.currentIndex())
    assert settings.language is Language.GERMAN
    assert page.note.text() == "Das gilt, sobald Shoal neu gestartet wird."
    page.language.setCurrentIndex(page.language.findText("English"))
    page.language.activated.emit(page.language.currentIndex())
    assert not page.note.isVisible(), "that is what holds already"


def test_language_names_stay_readable_in_every_language(
    tmp_path: Path, settings: Settings, qapp: QCoreApplication
) -> None:
    with speaking("fr"):
        part = AppPart()
        names = [part.language.itemText(at) for at in range(part.language.count())]
    assert names == ["comme le système", "English", "Deutsch", "Français"]
    part.deleteLater()
