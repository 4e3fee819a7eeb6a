from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.messages import Message, StatusArrived
from app.settings import Settings, Theme
from app.settings_presenters import settings_view
from app.setup_messages import (
    ChangeAsked,
    ChangeFailed,
    KeptModelsArrived,
    PlanArrived,
    SettingsArrived,
    SwarmArrived,
)
from app.windows.settings import API, APP, SettingsWindow
from app.windows.swarm_choice import Choice, Way
from engine.config import Config
from engine.localapi.running import Home
from engine.localapi.schema import SwarmInfo
from engine.localapi.settings import KeptModelInfo, KeptModels
from engine.localapi.updates import UpdateInfo
from tests.support.app_states import after, engine_settings, plan_preview, status

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

UP = "limits.uplink_bytes_per_s"


def view_of(*messages: Message) -> Any:
    state = after(StatusArrived(status()), *messages)
    return settings_view(state.setup, state.status, str)


@pytest.fixture
def window(qtbot: QtBot) -> SettingsWindow:
    window = SettingsWindow(view_of(SettingsArrived(engine_settings(guest__to_games=False))))
    qtbot.addWidget(window)
    window.bring_up()
    return window


def hear(window: SettingsWindow, *messages: Message) -> None:
    window.show_view(view_of(*messages))


def shown(window: QWidget) -> str:
    return "\n".join(label.text() for label in window.findChildren(QLabel) if label.isVisible())


def number(window: SettingsWindow, name: str) -> QDoubleSpinBox:
    editor = window.editors[name].editor
    assert isinstance(editor, QDoubleSpinBox)
    return editor


def test_every_row_is_a_setting_that_the_engine_knows_and_takes(window: SettingsWindow) -> None:
    tree = Config().model_dump(mode="json")
    for name, editor in window.editors.items():
        branch, field = name.split(".")
        tree[branch][field] = editor.value
    tree["guest"]["schedule"] = ["mon-fri 18:00-08:00"]
    assert Config.model_validate(tree).guest.to_games is False


def test_values_are_shown_in_a_persons_units_and_nothing_counts_as_changed(
    window: SettingsWindow,
) -> None:
    hear(window, SettingsArrived(engine_settings(limits__uplink_bytes_per_s=1_000_000.0)))
    assert number(window, UP).text() == "8.0 Mbit/s"
    assert number(window, "limits.ram_bytes").text() == "as much as fits"
    assert window.changed == {}
    assert not window.apply.isEnabled()


def test_changes_are_applied_together(window: SettingsWindow, qtbot: QtBot) -> None:
    number(window, UP).setValue(4)
    number(window, "limits.ram_bytes").setValue(2.5)
    programs = window.editors["guest.exclusive_programs"].editor
    assert isinstance(programs, QPlainTextEdit)
    programs.setPlainText(" blender \n\n")
    with qtbot.waitSignal(window.apply_wanted) as asked:
        qtbot.mouseClick(window.apply, Qt.MouseButton.LeftButton)
    assert asked.args == [
        {
            UP: 500_000.0,
            "limits.ram_bytes": 2_500_000_000,
            "guest.exclusive_programs": ["blender"],
        }
    ]


def test_card_is_asked_for_while_limits_are_edited(window: SettingsWindow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window.preview_wanted) as asked:
        number(window, "stage.max_blocks").setValue(12)
    assert asked.args == [{"stage.max_blocks": 12}]
    hear(window, SettingsArrived(engine_settings()), PlanArrived(plan_preview(span=(0, 12))))
    assert "You would hold blocks 0–11 of SmolLM2-135M-Instruct" in shown(window)


def test_changes_can_be_taken_back(window: SettingsWindow, qtbot: QtBot) -> None:
    games = window.editors["guest.to_games"].editor
    assert isinstance(games, QCheckBox)
    games.click()
    assert window.changed == {"guest.to_games": True}
    qtbot.mouseClick(window.revert, Qt.MouseButton.LeftButton)
    assert window.changed == {}
    assert not games.isChecked()


def test_what_lets_the_stage_begin_again_is_told_before(window: SettingsWindow) -> None:
    number(window, UP).setValue(4)
    assert "starts again" not in shown(window)
    number(window, "stage.max_blocks").setValue(4)
    assert "the stage starts again" in shown(window)


def test_refused_change_stays_to_be_corrected(window: SettingsWindow) -> None:
    known = SettingsArrived(engine_settings())
    hear(window, known)
    number(window, UP).setValue(0.1)
    hear(window, known, ChangeAsked())
    assert not window.apply.isEnabled()
    hear(window, known, ChangeAsked(), ChangeFailed("It must be at least 16000."))
    assert "It must be at least 16000." in shown(window)
    assert UP in window.changed
    assert window.apply.isEnabled()


def test_model_is_deleted_at_the_second_click_and_never_while_it_runs(
    window: SettingsWindow, qtbot: QtBot
) -> None:
    kept = KeptModels(
        folder="/models",
        free_bytes=10**10,
        models=(
            KeptModelInfo(name="used", num_bytes=10**8, in_use=True),
            KeptModelInfo(name="old", num_bytes=10**9, in_use=False),
        ),
    )
    hear(window, SettingsArrived(engine_settings()), KeptModelsArrived(kept))
    window.list.setCurrentRow(2)
    used, old = (
        next(b for b in window.findChildren(QPushButton) if b.accessibleName() == f"Delete {name}")
        for name in ("used", "old")
    )
    assert not used.isEnabled()
    qtbot.mouseClick(old, Qt.MouseButton.LeftButton)
    assert old.text() == "Really delete"
    with qtbot.waitSignal(window.models.delete_wanted) as asked:
        qtbot.mouseClick(old, Qt.MouseButton.LeftButton)
    assert asked.args == ["old"]


def test_swarm_can_be_joined_left_and_its_invite_copied(
    window: SettingsWindow, qtbot: QtBot
) -> None:
    assert not window.swarm.change.isEnabled()
    window.swarm.choice.take_invite("shoal://abc")
    with qtbot.waitSignal(window.swarm.change_wanted) as asked:
        window.swarm.change.click()
    assert asked.args == [Choice(Way.JOIN, "", private=True, invite="shoal://abc")]
    swarm = SwarmInfo(name="reef", private=True, invite="shoal://abc")
    hear(window, SettingsArrived(engine_settings()), SwarmArrived(swarm))
    window.swarm.choice.alone.click()
    assert window.swarm.change.isEnabled()
    assert not window.swarm.copy.isHidden()


def test_api_page_shows_examples_that_work_here(window: SettingsWindow) -> None:
    window.api.show_token_file(Path("/home/ada/token"))
    hear(window, SettingsArrived(engine_settings()))
    window.open_page(API)
    assert window.api.url.text() == "http://127.0.0.1:4000/v1"
    text = window.api.snippet.toPlainText()
    compile(text, "example", "exec")
    assert "/home/ada/token" in text
    assert "http://127.0.0.1:4000/v1" in text


def test_identity_needs_a_passphrase(window: SettingsWindow, qtbot: QtBot) -> None:
    part = window.identity
    assert not part.back_up.isEnabled()
    qtbot.keyClicks(part.passphrase, "long enough")
    assert part.back_up.isEnabled()
    assert part.restore.isEnabled()


def test_every_editor_has_a_name_and_can_be_reached_by_keyboard(window: SettingsWindow) -> None:
    for editor in window.editors.values():
        assert editor.editor.accessibleName()
        assert editor.editor.focusPolicy() & Qt.FocusPolicy.TabFocus


def test_no_text_is_cut_in_a_larger_font(window: SettingsWindow, qtbot: QtBot) -> None:
    font = window.font()
    font.setPointSizeF(font.pointSizeF() * 1.25)
    window.setFont(font)
    for page in range(window.list.count()):
        window.list.setCurrentRow(page)
        qtbot.wait(30)
        for label in window.findChildren(QLabel):
            if label.isVisible() and label.wordWrap():
                assert label.height() >= label.heightForWidth(label.width()), label.text()
        for box in window.findChildren(QCheckBox):
            if box.isVisible():
                assert box.width() >= box.sizeHint().width(), box.text()


def test_looks_are_remembered(tmp_path: Path) -> None:
    settings = Settings(Home.under(tmp_path))
    assert (settings.theme, settings.stays_in_tray) == (Theme.SYSTEM, True)
    settings.keep_theme(Theme.DARK)
    settings.keep_stays_in_tray(stays=False)
    settings._file.sync()
    again = Settings(Home.under(tmp_path))
    assert (again.theme, again.stays_in_tray) == (Theme.DARK, False)


def with_update(**fields: Any) -> Any:
    info = UpdateInfo.model_validate({"package": "run", "version": "0.2.0", **fields})
    state = after(StatusArrived(status(update=info)), SettingsArrived(engine_settings()))
    return settings_view(state.setup, state.status, str)


def test_a_new_version_is_installed_and_switched_to_by_clicks(
    window: SettingsWindow, qtbot: QtBot
) -> None:
    window.open_page(APP)
    part = window.update_part
    window.show_view(with_update(step="available", summary="Swims faster."))
    assert "This is Shoal 0.1.0" in shown(part)
    assert "Shoal 0.2.0 is there. Swims faster." in shown(part)
    assert not part.restart.isVisible()
    with qtbot.waitSignal(part.install_wanted):
        qtbot.mouseClick(part.install, Qt.MouseButton.LeftButton)
    window.show_view(with_update(step="fetching", done_bytes=4e6, total_bytes=8e6))
    assert "Fetching Shoal 0.2.0: 4.0 MB of 8.0 MB." in shown(part)
    assert not part.install.isVisible()
    window.show_view(with_update(step="ready"))
    with qtbot.waitSignal(part.restart_wanted):
        qtbot.mouseClick(part.restart, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(part.looking_wanted) as looking:
        part.looks.click()
    assert looking.args == [False]


def test_what_the_systems_package_manager_must_install_is_a_command_to_copy(
    window: SettingsWindow,
) -> None:
    window.open_page(APP)
    command = "sudo apt install /home/ada/shoal_0.2.0_amd64.deb"
    window.show_view(with_update(step="ready", package="deb", command=command))
    part = window.update_part
    assert part.command.text() == command
    assert not part.restart.isVisible()
    part.copy.click()
    assert QGuiApplication.clipboard().text() == command


def test_a_version_that_failed_and_one_that_was_refused_are_told(window: SettingsWindow) -> None:
    window.open_page(APP)
    window.show_view(with_update(step="available", failed="0.2.0", problem="It was altered."))
    assert "Shoal 0.2.0 did not start, so this version runs again." in shown(window)
    assert "It was altered." in shown(window)


def test_an_installation_of_ones_own_is_left_to_its_owner(window: SettingsWindow) -> None:
    window.open_page(APP)
    window.show_view(with_update(step="available", package="source"))
    assert not window.update_part.install.isVisible()
    assert "bring it up to date as you made it" in shown(window)
