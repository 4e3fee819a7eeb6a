from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from app.messages import Message, StatusArrived
from app.presenters import overview
from app.setup_messages import ChangeFailed, KeptModelsArrived, PlanArrived, SwarmArrived
from app.setup_presenters import first_run_view
from app.windows.first_run import FirstRunWindow
from app.windows.swarm_choice import Choice, Way
from engine.localapi.schema import SwarmInfo
from engine.localapi.settings import KeptModels
from tests.support.app_states import NOW, after, plan_preview, status

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

WAITS = status(state="starting", awaits_setup=True, span=None, can_chat=False)


@pytest.fixture
def window(qtbot: QtBot) -> FirstRunWindow:
    window = FirstRunWindow()
    qtbot.addWidget(window)
    window.bring_up()
    hear(window, StatusArrived(WAITS), PlanArrived(plan_preview()))
    return window


def hear(window: FirstRunWindow, *messages: Message) -> None:
    state = after(*messages)
    headline = overview(state, NOW, str).headline
    window.show_view(
        first_run_view(state.setup, state.status, window.caps, headline, str, window.folder.folder)
    )


def shown(window: FirstRunWindow) -> str:
    return "\n".join(label.text() for label in window.findChildren(QLabel) if label.isVisible())


def press(qtbot: QtBot, window: FirstRunWindow) -> None:
    qtbot.mouseClick(window.next, Qt.MouseButton.LeftButton)


def test_first_step_says_who_can_read_what_is_written(window: FirstRunWindow) -> None:
    assert "every computer of a chain can read your text" in shown(window)


def test_second_step_measures_by_itself_and_asks_again_for_every_slide(
    window: FirstRunWindow, qtbot: QtBot
) -> None:
    with qtbot.waitSignals([window.measure_wanted, window.caps_chosen]):
        press(qtbot, window)
    assert "You would hold all 30 blocks" in shown(window)
    with qtbot.waitSignal(window.caps_chosen) as asked:
        qtbot.keyClick(window.sliders.memory, Qt.Key.Key_Left)
    assert asked.args is not None
    assert asked.args[0].memory == window.sliders.memory.maximum() - 1


def test_last_step_begins_as_chosen(window: FirstRunWindow, qtbot: QtBot) -> None:
    press(qtbot, window)
    press(qtbot, window)
    with qtbot.waitSignal(window.begin_wanted) as begun:
        press(qtbot, window)
    assert begun.args is not None
    assert begun.args[0].way is Way.ALONE
    qtbot.keyClicks(window.swarm.name, "reef")
    with qtbot.waitSignal(window.begin_wanted) as begun:
        press(qtbot, window)
    assert begun.args == [Choice(Way.CREATE, "reef", private=True)]


def test_folder_for_models_is_chosen_before_anything_is_downloaded(
    window: FirstRunWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    press(qtbot, window)
    press(qtbot, window)
    kept = KeptModels(folder="/home/ada/models", free_bytes=84 * 10**9, models=())
    hear(window, StatusArrived(WAITS), KeptModelsArrived(kept))
    assert "Models are kept in /home/ada/models, where 84 GB are free." in shown(window)
    window.folder.choose.click()
    (dialog,) = window.findChildren(QFileDialog)
    with qtbot.waitSignal(window.folder.changed):
        dialog.fileSelected.emit(str(tmp_path))
    dialog.close()
    hear(window, StatusArrived(WAITS), KeptModelsArrived(kept))
    assert f"Models will be kept in {tmp_path}." in shown(window)


def test_nothing_incomplete_can_begin(window: FirstRunWindow, qtbot: QtBot) -> None:
    press(qtbot, window)
    press(qtbot, window)
    window.swarm.join.click()
    assert not window.next.isEnabled()
    qtbot.keyClicks(window.swarm.invite, "shoal://abc")
    assert window.next.isEnabled()


def test_invite_comes_from_a_file_or_the_file_is_refused(
    window: FirstRunWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.shoal", tmp_path / "bad.shoal"
    good.write_text("shoal://abc\n")
    bad.write_bytes(b"\xff\x00")
    window.swarm.read_file(good)
    assert window.swarm.choice == Choice(Way.JOIN, "", private=True, invite="shoal://abc")
    window.swarm.read_file(bad)
    assert "holds no invite" in shown(window)


def test_refusal_stays_on_the_last_step_and_success_leads_to_the_end(
    window: FirstRunWindow, qtbot: QtBot
) -> None:
    press(qtbot, window)
    press(qtbot, window)
    hear(window, StatusArrived(WAITS), ChangeFailed("Nobody answers."))
    assert "Nobody answers." in shown(window)
    assert "Step 3 of 3" in shown(window)
    founded = SwarmInfo(name="reef", invite="shoal://abc")
    hear(window, StatusArrived(status(swarm="reef")), SwarmArrived(founded))
    assert "Ready. You can chat now." in shown(window)
    assert window.invite.text() == "shoal://abc"
    with qtbot.waitSignal(window.chat_wanted):
        press(qtbot, window)
    assert not window.isVisible()


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(window: FirstRunWindow) -> None:
    sliders, swarm = window.sliders, window.swarm
    for control in (
        window.next, window.back, window.measure, window.copy, sliders.memory, sliders.up,
        sliders.down, swarm.alone, swarm.create_swarm, swarm.join, swarm.name, swarm.invite,
        swarm.open_file, swarm.private, window.folder.choose,
    ):  # fmt: skip
        text = control.accessibleName() or getattr(control, "text", str)()
        assert text.strip("&"), control
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control


def test_no_text_is_cut_in_a_larger_font(window: FirstRunWindow, qtbot: QtBot) -> None:
    font = window.font()
    font.setPointSizeF(font.pointSizeF() * 1.25)
    window.setFont(font)
    for page in range(4):
        window._go_to(page)
        qtbot.wait(30)
        for label in window.findChildren(QLabel):
            if label.isVisible() and label.wordWrap():
                assert label.height() >= label.heightForWidth(label.width()), label.text()
