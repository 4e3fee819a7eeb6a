from __future__ import annotations

from datetime import UTC, datetime

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.messages import EngineStarting, Message, StatusArrived
from app.presenters import overview
from app.windows.home import HomeWindow, on_gnome
from engine.localapi.schema import PauseRequest
from tests.support.app_states import after, status

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)


@pytest.fixture
def home(qtbot: QtBot) -> HomeWindow:
    window = HomeWindow(on_gnome=True)
    qtbot.addWidget(window)
    hear(window, EngineStarting(), StatusArrived(status(tokens_served=48213)))
    window.bring_up()
    return window


def hear(window: HomeWindow, *messages: Message) -> None:
    window.show_view(overview(after(*messages), NOW, str))


def test_window_shows_state_and_numbers(home: HomeWindow) -> None:
    shown = [label.text() for label in home.findChildren(QLabel)]
    assert "Ready with all 30 blocks of SmolLM2-135M-Instruct" in shown
    assert "48,213" in shown


def test_window_names_the_gnome_extension(home: HomeWindow) -> None:
    shown = "".join(label.text() for label in home.findChildren(QLabel))
    assert "AppIndicator" in shown
    assert "https://extensions.gnome.org/extension/615/" in shown


def test_other_desktops_hear_nothing_of_gnome(qtbot: QtBot) -> None:
    window = HomeWindow(on_gnome=False)
    qtbot.addWidget(window)
    shown = "".join(label.text() for label in window.findChildren(QLabel))
    assert "shows no tray" in shown
    assert "GNOME" not in shown


@pytest.mark.parametrize(
    ("desktop", "is_gnome"),
    [("GNOME", True), ("ubuntu:GNOME", True), ("KDE", False), ("", False), (None, False)],
)
def test_desktop_is_told_by_its_own_name(
    monkeypatch: pytest.MonkeyPatch, desktop: str | None, is_gnome: bool
) -> None:
    monkeypatch.delenv("XDG_CURRENT_DESKTOP", raising=False)
    if desktop is not None:
        monkeypatch.setenv("XDG_CURRENT_DESKTOP", desktop)
    assert on_gnome() is is_gnome


def test_pause_button_offers_every_kind_of_pause(home: HomeWindow, qtbot: QtBot) -> None:
    heard: list[PauseRequest] = []
    home.pause_wanted.connect(heard.append)
    for entry in home.pause.choices.actions():
        entry.trigger()
    assert heard == [
        PauseRequest(seconds=3600),
        PauseRequest(until_tomorrow=True),
        PauseRequest(),
        PauseRequest(finish_first=True),
    ]


def test_draining_stage_is_paused_at_once_by_one_click(home: HomeWindow, qtbot: QtBot) -> None:
    hear(home, EngineStarting(), StatusArrived(status(state="draining", sessions=2)))
    assert home.pause.text() == "&Pause now"
    with qtbot.waitSignal(home.pause_wanted) as told:
        qtbot.mouseClick(home.pause, Qt.MouseButton.LeftButton)
    assert told.args == [PauseRequest()]


def test_buttons_tell_what_the_person_wants(home: HomeWindow, qtbot: QtBot) -> None:
    for button, wanted in (
        (home.chat, home.chat_wanted),
        (home.dashboard, home.dashboard_wanted),
        (home.quit, home.quit_wanted),
    ):
        with qtbot.waitSignal(wanted):
            qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_only_fitting_controls_are_offered(home: HomeWindow) -> None:
    assert home.pause.isVisible()
    assert not home.resume.isVisible()
    hear(home, EngineStarting(), StatusArrived(status(state="paused")))
    assert home.resume.isVisible()
    assert not home.pause.isVisible()


def test_window_grows_with_its_text(qtbot: QtBot) -> None:
    window = HomeWindow(on_gnome=True)
    qtbot.addWidget(window)
    hear(window, EngineStarting())
    window.bring_up()
    hear(window, EngineStarting(), StatusArrived(status(model="A-long-name-" * 12)))

    def nothing_is_cut() -> None:
        labels = [label for label in window.findChildren(QLabel) if label.isVisible()]
        assert len(labels) > 10
        for label in labels:
            width = label.width()
            needed = label.heightForWidth(width) if label.wordWrap() else label.sizeHint().height()
            assert label.pixmap().isNull() is False or label.height() >= needed

    qtbot.waitUntil(nothing_is_cut)


def test_every_button_has_a_name(home: HomeWindow) -> None:
    assert all(button.accessibleName() for button in home.findChildren(QPushButton))
