from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.dashboard_presenters import dashboard_view
from app.messages import EngineStarting, EngineStopped
from app.past_messages import ArchiveTold, LogArrived, PreviewArrived, StatisticsArrived
from app.past_presenters import past_view
from app.presenters import overview
from app.settings import Settings
from app.state import AppState
from app.windows.dashboard import DashboardWindow
from engine.localapi.running import Home
from engine.localapi.schema import PauseRequest
from engine.localapi.statistics import Range
from tests.support.app_states import after
from tests.support.desktop.dashboard_scenes import (
    LOG,
    PREVIEW,
    in_swarm,
    past_scenes,
    scenes,
    statistics,
)

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> DashboardWindow:
    window = DashboardWindow(Settings(Home.under(tmp_path)), tmp_path)
    qtbot.addWidget(window)
    show(window, in_swarm())
    window.bring_up()
    return window


def show(window: DashboardWindow, state: AppState) -> None:
    over = overview(state, NOW, str)
    window.show_view(over, dashboard_view(state, over, str), past_view(state, NOW, str))


def texts(window: QWidget) -> str:
    return "\n".join(label.text() for label in window.findChildren(QLabel) if label.isVisible())


def test_window_shows_what_is_held_and_who_is_reached(window: DashboardWindow) -> None:
    shown = texts(window)
    assert "Serving blocks 10–19 of SmolLM2-135M-Instruct" in shown
    assert "10–19 of 30" in shown
    assert "48,213 tokens" in shown
    assert "everyone, through 2 relays." in shown
    assert window.swarm.links.rowCount() == 2


def test_picture_has_my_place_in_it_and_fits_where_it_is_drawn(window: DashboardWindow) -> None:
    placed = window.swarm.picture.boxes()
    assert [box.is_self for _, box in placed] == [False, True, False, False]
    room = window.swarm.picture.rect().toRectF()
    assert all(room.contains(place) for place, _ in placed)
    for one in range(len(placed)):
        for other in range(one):
            assert not placed[one][0].intersects(placed[other][0])


def test_every_text_of_a_stage_is_whole_with_larger_letters(
    window: DashboardWindow, qtbot: QtBot
) -> None:
    larger = QFont(QApplication.font())
    larger.setPointSizeF(larger.pointSizeF() * 1.25)
    window.swarm.picture.setFont(larger)
    show(window, in_swarm(stages=9, beside=14))
    stages = window.swarm.picture.boxes()[:9]
    metrics = QFontMetricsF(window.swarm.picture.font())
    for place, box in stages:
        assert place.width() >= metrics.horizontalAdvance(box.blocks)
        assert place.height() >= 4 * metrics.height()


@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_labels_are_never_cut(window: DashboardWindow, qtbot: QtBot, scale: float) -> None:
    font = QFont(QApplication.font())
    font.setPointSizeF(font.pointSizeF() * scale)
    window.setFont(font)

    def nothing_is_cut() -> None:
        labels = [label for label in window.findChildren(QLabel) if label.isVisible()]
        for label in labels:
            if label.pixmap().isNull():
                width = label.width()
                needed = (
                    label.heightForWidth(width) if label.wordWrap() else label.sizeHint().height()
                )
                assert label.height() >= needed, label.text()

    for state in scenes().values():
        show(window, state)
        qtbot.waitUntil(nothing_is_cut)
    for page, state in past_scenes().values():
        window.tabs.setCurrentIndex(page)
        show(window, state)
        qtbot.waitUntil(nothing_is_cut)


def test_facts_are_gone_while_the_engine_is_not_running(window: DashboardWindow) -> None:
    show(window, after(EngineStarting(), EngineStopped("It ended 5 times in a row.")))
    shown = texts(window)
    assert "There is nothing to show while the engine does not run." in shown
    assert "It ended 5 times in a row." in shown
    assert "10–19" not in shown
    assert not window.swarm.picture.isVisible()
    assert window.start.isVisible()


def test_head_has_the_controls_of_the_tray(window: DashboardWindow, qtbot: QtBot) -> None:
    heard: list[PauseRequest] = []
    window.pause_wanted.connect(heard.append)
    for entry in window.pause.choices.actions():
        entry.trigger()
    assert PauseRequest(seconds=3600) in heard
    assert PauseRequest(scope="everything") in heard
    show(window, scenes()["paused"])
    assert not window.pause.isVisible()
    with qtbot.waitSignal(window.resume_wanted):
        qtbot.mouseClick(window.resume, Qt.MouseButton.LeftButton)


def test_every_control_has_a_name_and_is_reached_by_keyboard(window: DashboardWindow) -> None:
    buttons = [button for button in window.findChildren(QPushButton) if button.isVisible()]
    assert buttons
    for button in buttons:
        assert button.accessibleName()
        assert button.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert window.swarm.picture.accessibleDescription().startswith("1. …kEr8wq, Blocks 0–9")


def test_totals_take_the_place_of_the_counts_since_the_start(window: DashboardWindow) -> None:
    assert "Served since the start" in texts(window)
    show(window, after(StatisticsArrived(statistics()), start=in_swarm()))
    shown = texts(window)
    assert "Served today\n48,213 tokens\nServed in all\n3,912,044 tokens" in shown
    assert "since the start" not in shown


def test_activity_has_six_plots_for_the_chosen_time(window: DashboardWindow, qtbot: QtBot) -> None:
    window.tabs.setCurrentWidget(window.activity)
    show(window, past_scenes()["week"][1])
    assert window.activity.ranges[Range.WEEK].isChecked()
    drawn = [one for one in window.activity.plots if one.isVisible()]
    assert [one.accessibleName() for one in drawn] == [
        "Tokens", "Network", "GPU memory", "Memory of Shoal", "GPU load", "GPU temperature"
    ]  # fmt: skip
    with qtbot.waitSignal(window.activity.range_chosen) as told:
        qtbot.mouseClick(window.activity.ranges[Range.DAY], Qt.MouseButton.LeftButton)
    assert told.args == [Range.DAY]


def test_page_without_history_says_why(window: DashboardWindow) -> None:
    window.tabs.setCurrentWidget(window.activity)
    show(window, in_swarm())
    assert "Asking the engine…" in texts(window)
    show(window, past_scenes()["no-history"][1])
    assert "The engine does not answer." in texts(window)
    assert not any(one.isVisible() for one in window.activity.plots)


def test_log_follows_its_end_but_not_while_somebody_reads(window: DashboardWindow) -> None:
    window.tabs.setCurrentWidget(window.log)
    show(window, after(LogArrived(LOG), start=in_swarm()))
    bar = window.log.text.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    bar.setValue(3)
    show(window, after(LogArrived((*LOG, "and on")), start=in_swarm()))
    assert bar.value() == 3
    bar.setValue(bar.maximum())
    show(window, after(LogArrived((*LOG, "and on", "and on")), start=in_swarm()))
    assert bar.value() == bar.maximum()


def test_diagnostics_show_every_file_before_they_are_saved(
    window: DashboardWindow, qtbot: QtBot
) -> None:
    page = window.diagnostics
    window.tabs.setCurrentWidget(page)
    show(window, in_swarm())
    assert not page.save.isEnabled()
    show(window, after(PreviewArrived(PREVIEW), start=in_swarm()))
    names = [page.files.item(at).text().split(",")[0] for at in range(page.files.count())]
    assert names == ["machine.json", "status.json", "engine.log"]
    for at, entry in enumerate(PREVIEW.entries):
        page.files.setCurrentRow(at)
        assert page.text.toPlainText() == entry.text
    with qtbot.waitSignal(page.save_wanted):
        qtbot.mouseClick(page.save, Qt.MouseButton.LeftButton)
    told = after(PreviewArrived(PREVIEW), ArchiveTold("Saved as /x.zip."), start=in_swarm())
    show(window, told)
    assert "Saved as /x.zip." in texts(window)
    assert page.files.currentRow() == 2


def test_long_file_is_shown_from_its_newest_lines_on(window: DashboardWindow) -> None:
    lines = [f"line {at}" for at in range(100_000)]
    entry = PREVIEW.entries[2].model_copy(update={"text": "\n".join(lines)})
    preview = PREVIEW.model_copy(update={"entries": (entry,)})
    show(window, after(PreviewArrived(preview), start=in_swarm()))
    told, _, newest = window.diagnostics.text.toPlainText().partition("\n\n")
    assert told == "The newest lines; the archive holds all of them."
    shown = newest.splitlines()
    assert shown == lines[-len(shown) :]
    assert len(shown) > 1000


def test_place_of_the_window_is_remembered(qtbot: QtBot, tmp_path: Path) -> None:
    settings = Settings(Home.under(tmp_path))
    first = DashboardWindow(settings, tmp_path)
    qtbot.addWidget(first)
    first.resize(711, 507)
    first.show()
    with qtbot.waitSignal(first.closed):
        first.close()
    second = DashboardWindow(settings, tmp_path)
    qtbot.addWidget(second)
    assert (second.width(), second.height()) == (711, 507)
