from __future__ import annotations

from datetime import UTC, datetime

import pytest
from PySide6.QtGui import QAction
from pytestqt.qtbot import QtBot

from app.messages import Command, CommandSent, EngineStarting, Message, StatusArrived
from app.presenters import overview
from app.tray import Tray
from engine.localapi.schema import PauseRequest
from tests.support.app_states import after, status

# There is no tray to dock to here: what is tested is the menu.
pytestmark = pytest.mark.qt_log_ignore("systemTrayWindowChanged", extend=True)

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)


@pytest.fixture
def tray(qtbot: QtBot) -> Tray:
    return Tray()


def hear(tray: Tray, *messages: Message) -> None:
    tray.show(overview(after(EngineStarting(), *messages), NOW, str))


def entries(tray: Tray) -> list[QAction]:
    return [entry for entry in tray.menu.actions() if entry.isVisible() and entry.text()]


def labels(tray: Tray) -> list[str]:
    return [entry.text().replace("&", "") for entry in entries(tray)]


def test_menu_of_a_serving_node_begins_with_its_state(tray: Tray) -> None:
    hear(tray, StatusArrived(status(state="serving", span=(10, 20), swarm="reef")))
    assert labels(tray) == [
        "Serving blocks 10–19 of SmolLM2-135M-Instruct",
        "Pause for 1 hour",
        "Pause until tomorrow",
        "Pause until I resume",
        "Finish, then pause",
        "Pause everything, chat too",
        "Open chat",
        "Open dashboard",
        "Open batches",
        "Settings",
        "Quit Shoal",
    ]


def test_state_line_of_a_pause_tells_its_end_and_its_reason(tray: Tray) -> None:
    until = NOW.timestamp() + 1500
    yielding = status(state="yielding", until=until, reason="Yielding to steam, which is running.")
    hear(tray, StatusArrived(yielding))
    assert labels(tray)[:2] == [
        "Yielding until 18:30 (25 min left)",
        "Yielding to steam, which is running.",
    ]
    hear(tray, StatusArrived(status(state="paused", reason="Paused until you resume.")))
    assert labels(tray) == [
        "Paused until you resume",
        "Resume",
        "Open chat",
        "Open dashboard",
        "Open batches",
        "Settings",
        "Quit Shoal",
    ]


def test_each_kind_of_pause_is_one_choice(tray: Tray) -> None:
    heard: list[PauseRequest] = []
    tray.pause_wanted.connect(heard.append)
    hear(tray, StatusArrived(status(state="idle")))
    for entry in entries(tray)[1:5]:
        entry.trigger()
    assert heard == [
        PauseRequest(seconds=3600),
        PauseRequest(until_tomorrow=True),
        PauseRequest(),
        PauseRequest(finish_first=True),
    ]


def test_choice_made_while_the_state_changes_is_the_one_that_was_shown(tray: Tray) -> None:
    heard: list[PauseRequest] = []
    tray.pause_wanted.connect(heard.append)
    hear(tray, StatusArrived(status(state="serving")))
    hear(tray, StatusArrived(status(state="draining", sessions=1)))
    [now] = [entry for entry in entries(tray) if entry.text() == "&Pause now"]
    now.trigger()
    assert heard == [PauseRequest()]


def test_choices_wait_while_an_order_is_under_way(tray: Tray) -> None:
    hear(tray, StatusArrived(status(state="idle")), CommandSent(Command.PAUSE))
    waiting = {entry.text().replace("&", ""): entry.isEnabled() for entry in entries(tray)}
    assert waiting["Pause for 1 hour"] is False
    assert waiting["Open chat"] is True


def test_message_about_a_batch_leads_to_the_batches(tray: Tray, qtbot: QtBot) -> None:
    hear(tray)
    tray.notify("“Articles” is done: 120 rows answered.")
    with qtbot.waitSignal(tray.batches_wanted):
        tray._icon.messageClicked.emit()


def test_a_new_version_is_an_entry_that_leads_to_it(tray: Tray, qtbot: QtBot) -> None:
    hear(tray, StatusArrived(status(update={"step": "latest", "package": "run"})))
    assert not [label for label in labels(tray) if "Update" in label]
    new = {"step": "available", "package": "run", "version": "0.2.0"}
    hear(tray, StatusArrived(status(update=new)))
    (entry,) = [
        entry for entry in entries(tray) if "Update to Shoal 0.2.0" in entry.text().replace("&", "")
    ]
    with qtbot.waitSignal(tray.update_wanted):
        entry.trigger()
