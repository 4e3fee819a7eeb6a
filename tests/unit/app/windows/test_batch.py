from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QFont
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QTableView,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.batch_messages import (
    JobChosen,
    JobDeleted,
    JobsArrived,
    JobSettled,
    JobUndo,
    JobUndone,
    PageWanted,
    RowsArrived,
)
from app.batch_presenters import batch_view
from app.batch_rows import PROMPT, STATE
from app.batch_state import version_of
from app.messages import StatusArrived
from app.settings import Settings
from app.state import AppState, apply
from app.windows.batch import BatchWindow
from app.windows.batch_files import proposed_output
from engine.localapi.jobs import JobCreateRequest
from engine.localapi.running import Home
from tests.support.app_states import after, status
from tests.support.desktop.batch_scenes import BAD, OTHERS, job, looking_at, rows, scenes

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)
CONTROLS = (QPushButton, QLineEdit, QComboBox, QSpinBox, QPlainTextEdit, QListWidget, QTableView)


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[BatchWindow]:
    window = BatchWindow(Settings(Home.under(tmp_path)))
    show(window, looking_at(job(), *OTHERS))
    window.bring_up()
    yield window
    window.deleteLater()
    # Gone at once: what is left over would be drawn anew when a later test changes the palette.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def show(window: BatchWindow, state: AppState) -> None:
    window.show_view(batch_view(state, NOW, str))


def texts(window: QWidget) -> str:
    return "\n".join(label.text() for label in window.findChildren(QLabel) if label.isVisible())


class Engine:
    """Answers the pages that a window asks for."""

    def __init__(self, window: BatchWindow, state: AppState) -> None:
        self.window, self.state = window, state
        self.asked: list[PageWanted] = []
        window.page.model.wanted.connect(self.asked.append)
        show(window, state)

    def answer(self) -> None:
        for wanted in self.asked[:]:
            self.asked.remove(wanted)
            self.state = apply(self.state, RowsArrived(wanted, rows(wanted, 50_000)))
        show(self.window, self.state)


def test_window_shows_the_batch_its_rows_and_the_others(window: BatchWindow) -> None:
    assert "72–102 min" in texts(window)
    assert window.list.count() == 4
    model = window.page.model
    assert model.rowCount() == 50_000
    assert model.data(model.index(0, STATE)) == "Done"
    assert model.data(model.index(4, STATE)) == "Failed"


def test_table_asks_only_for_the_pages_that_are_looked_at(
    window: BatchWindow, qtbot: QtBot
) -> None:
    up = after(StatusArrived(status()), JobsArrived((job(),)), JobChosen("job_1"))
    engine = Engine(window, up)
    qtbot.waitUntil(lambda: bool(engine.asked))
    assert {wanted.page for wanted in engine.asked} == {0}
    engine.answer()
    window.page.rows.scrollToBottom()
    qtbot.waitUntil(lambda: any(wanted.page == 499 for wanted in engine.asked))
    assert len(engine.asked) <= 2
    engine.answer()
    model = window.page.model
    assert model.data(model.index(49_999, PROMPT)).startswith("Summarize")
    assert model.data(model.index(20_000, PROMPT)) == "…"


def test_rows_that_are_looked_at_are_asked_for_again_when_the_batch_goes_on(
    window: BatchWindow, qtbot: QtBot
) -> None:
    engine = Engine(window, looking_at(job()))
    more = job(done_rows=18_212)
    engine.state = apply(engine.state, JobsArrived((more,)))
    show(window, engine.state)
    qtbot.waitUntil(lambda: bool(engine.asked))
    assert engine.asked == [PageWanted("job_1", False, 0, version_of(more))]
    model = window.page.model
    assert model.data(model.index(0, STATE)) == "Done"  # the old ones stay until then
    engine.answer()
    show(window, engine.state)
    qtbot.wait(50)
    assert engine.asked == []


def test_place_in_the_table_stays_while_rows_are_answered(window: BatchWindow) -> None:
    window.page.rows.selectRow(3)
    bar = window.page.rows.verticalScrollBar()
    bar.setValue(30)
    show(window, looking_at(job(done_rows=18_300), *OTHERS))
    assert bar.value() == 30
    assert [index.row() for index in window.page.rows.selectionModel().selectedRows()] == [3]


def test_orders_are_told_with_the_job(window: BatchWindow, qtbot: QtBot) -> None:
    page = window.page
    with qtbot.waitSignal(page.ordered) as told:
        qtbot.mouseClick(page.pause, Qt.MouseButton.LeftButton)
    assert told.args == ["job_1", "pause"]
    page.priority.setCurrentIndex(2)
    with qtbot.waitSignal(page.priority_wanted) as changed:
        page.priority.activated.emit(2)
    assert changed.args == ["job_1", 10]
    show(window, looking_at(BAD, *OTHERS))
    assert "140 of 1,200 rows cannot be asked" in texts(window)
    with qtbot.waitSignal(page.ordered) as begun:
        qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    assert begun.args == ["job_1", "start"]


def test_what_cannot_be_undone_by_hand_is_offered_back_instead_of_asked_about(
    window: BatchWindow, qtbot: QtBot
) -> None:
    assert not window.undo.isVisible()
    with qtbot.waitSignal(window.page.ordered) as ordered:
        qtbot.mouseClick(window.page.cancel, Qt.MouseButton.LeftButton)
    assert ordered.args == ["job_1", "cancel"]
    cancelled = job(state="cancelled")
    offered = looking_at(cancelled, *OTHERS)
    offered = apply(offered, JobSettled(cancelled, JobUndo("job_1", "articles.csv", "uncancel")))
    show(window, offered)
    assert "“articles.csv” was cancelled." in texts(window)
    with qtbot.waitSignal(window.page.delete_wanted) as deleted:
        qtbot.mouseClick(window.page.delete, Qt.MouseButton.LeftButton)
    assert deleted.args == ["job_1"]
    show(window, apply(offered, JobDeleted(JobUndo("job_1", "articles.csv", "restore"))))
    assert "“articles.csv” is in the trash." in texts(window)
    assert window.list.count() == 3


def test_undo_is_reached_by_keyboard_from_everywhere(window: BatchWindow, qtbot: QtBot) -> None:
    undone: list[bool] = []
    window.undo_wanted.connect(lambda: undone.append(True))
    undo_key = Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier
    window.page.rows.setFocus()
    qtbot.keyClick(window.page.rows, *undo_key)
    assert undone == []  # there is nothing to undo
    show(window, scenes()["done"])
    window.page.delete.setFocus()
    gone = JobDeleted(JobUndo("job_1", "articles.csv", "restore"))
    show(window, apply(scenes()["done"], gone))
    qtbot.waitUntil(window.list.hasFocus)
    qtbot.keyClick(window.list, *undo_key)
    assert undone == [True]
    button = window.undo.findChildren(QPushButton)[0]
    qtbot.keyClick(window.list, Qt.Key.Key_Tab)
    assert button.hasFocus()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert undone == [True, True]


def test_a_text_that_is_being_written_keeps_its_own_undo(window: BatchWindow, qtbot: QtBot) -> None:
    undone: list[bool] = []
    window.undo_wanted.connect(lambda: undone.append(True))
    gone = JobDeleted(JobUndo("job_1", "articles.csv", "restore"))
    show(window, apply(looking_at(job(), *OTHERS), gone))
    field = window.form.template
    field.setFocus()
    qtbot.keyClicks(field, "Summarize")
    qtbot.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert field.toPlainText() == ""
    assert undone == []


@pytest.mark.parametrize("key", [Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_D])
def test_no_single_key_does_away_with_a_batch(
    window: BatchWindow, qtbot: QtBot, key: Qt.Key
) -> None:
    heard: list[object] = []
    window.page.delete_wanted.connect(heard.append)
    window.page.ordered.connect(lambda job_id, order: heard.append((job_id, order)))
    show(window, scenes()["done"])
    for widget in (window.list, window.page.rows, window.page.failed):
        widget.setFocus()
        qtbot.keyClick(widget, key)
    assert heard == []


def test_results_without_a_file_are_offered_to_be_saved(window: BatchWindow, qtbot: QtBot) -> None:
    show(window, looking_at(job(state="completed", output_path=None), *OTHERS))
    assert window.page.results.text() == "Sa&ve results…"
    with qtbot.waitSignal(window.page.save_wanted) as told:
        qtbot.mouseClick(window.page.results, Qt.MouseButton.LeftButton)
    assert told.args == ["job_1"]
    show(window, looking_at(job(state="completed"), *OTHERS))
    with qtbot.waitSignal(window.page.folder_wanted) as shown:
        qtbot.mouseClick(window.page.results, Qt.MouseButton.LeftButton)
    assert shown.args == ["/home/ada/articles.results.csv"]


def test_dropped_file_is_previewed_with_a_proposed_output(
    window: BatchWindow, qtbot: QtBot
) -> None:
    heard: list[object] = []
    window.chosen.connect(heard.append)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile("/home/ada/letters.csv")])
    event = QDropEvent(
        QPointF(300, 300), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    with qtbot.waitSignal(window.form.preview_wanted) as told:
        window.dropEvent(event)
    assert told.args[0].input_path == "/home/ada/letters.csv"
    assert heard == [None]
    assert window.form.output.text() == "/home/ada/letters.results.csv"


def test_form_becomes_a_request_with_all_that_was_said(window: BatchWindow, qtbot: QtBot) -> None:
    show(window, scenes()["form"])
    form = window.form
    form.take_file("/home/ada/articles.csv")
    form.template.setPlainText("Translate: ")
    form.template.moveCursor(form.template.textCursor().MoveOperation.End)
    form.columns.menu().actions()[1].trigger()
    form.system.setPlainText("Answer in French.")
    form.tokens.setValue(128)
    form.priority.setCurrentIndex(2)
    with qtbot.waitSignal(form.create_wanted) as told:
        qtbot.mouseClick(form.start, Qt.MouseButton.LeftButton)
    assert told.args[0] == JobCreateRequest(
        input_path="/home/ada/articles.csv",
        template="Translate: {text}",
        system="Answer in French.",
        parameters={"max_tokens": 128},
        output_path="/home/ada/articles.results.csv",
        priority=10,
    )


def test_typing_asks_for_the_preview_once_it_rests(window: BatchWindow, qtbot: QtBot) -> None:
    show(window, scenes()["form"])
    heard: list[object] = []
    window.form.preview_wanted.connect(heard.append)
    qtbot.keyClicks(window.form.input, "/tmp/x.txt")
    assert heard == []
    qtbot.waitUntil(lambda: len(heard) == 1, timeout=2000)
    assert window.form.output.text() == "/tmp/x.results.jsonl"


@pytest.mark.parametrize(
    ("path", "output"),
    [("", ""), ("/a/b.tsv", "/a/b.results.csv"), ("/a/b.jsonl", "/a/b.results.jsonl")],
)
def test_results_are_proposed_beside_the_input(path: str, output: str) -> None:
    assert proposed_output(path) == output


def test_end_of_a_batch_is_told_in_the_window(window: BatchWindow, qtbot: QtBot) -> None:
    show(window, scenes()["news"])
    assert "“articles.csv” is done: 49,997 rows answered, 3 failed." in texts(window)
    with qtbot.waitSignal(window.chosen) as told:
        window.news.findChildren(QPushButton)[0].click()
    assert told.args == ["job_1"]


def test_every_control_has_a_name_and_is_reached_by_keyboard(window: BatchWindow) -> None:
    for scene in ("running", "review", "done", "form", "news", "cancelled", "deleted"):
        show(window, scenes()[scene])
        controls = [
            one for one in window.findChildren(QWidget)
            if isinstance(one, CONTROLS) and one.isVisible()
            and not isinstance(one.parent(), (QSpinBox, QComboBox))
        ]  # fmt: skip
        assert controls
        for one in controls:
            assert one.accessibleName() or getattr(one, "text", str)(), one
            assert one.focusPolicy() & Qt.FocusPolicy.TabFocus, one.accessibleName()


def test_labels_are_never_cut_with_larger_letters(window: BatchWindow, qtbot: QtBot) -> None:
    larger = QFont(QApplication.font())
    larger.setPointSizeF(larger.pointSizeF() * 1.25)
    window.setFont(larger)

    def nothing_is_cut() -> None:
        for label in window.findChildren(QLabel):
            if label.isVisible() and label.text():
                width = label.width()
                needed = (
                    label.heightForWidth(width) if label.wordWrap() else label.sizeHint().height()
                )
                assert label.height() >= needed, label.text()
        for button in window.findChildren(QPushButton):
            if button.isVisible():
                assert button.width() >= button.minimumSizeHint().width(), button.text()
        for at in range(window.list.count()):
            place = window.list.visualItemRect(window.list.item(at))
            room = place.adjusted(10, 0, -10, 0)
            text = window.list.fontMetrics().boundingRect(
                room, Qt.TextFlag.TextWordWrap, window.list.item(at).text()
            )
            assert place.height() >= text.height()

    for state in scenes().values():
        show(window, state)
        qtbot.waitUntil(nothing_is_cut)


def test_return_with_control_starts_from_any_field(window: BatchWindow, qtbot: QtBot) -> None:
    show(window, scenes()["form"])
    window.form.take_file("/home/ada/articles.csv")
    for field in (window.form.template, window.form.input):
        field.setFocus()
        with qtbot.waitSignal(window.form.create_wanted, timeout=3000):
            qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)


def test_new_batch_puts_the_keyboard_into_the_form(window: BatchWindow, qtbot: QtBot) -> None:
    window.list.setFocus()
    window.begin_new()
    show(window, scenes()["form"])
    qtbot.waitUntil(window.form.input.hasFocus)


def test_batch_that_comes_back_is_asked_for_again_when_its_rows_were_still_coming(
    window: BatchWindow, qtbot: QtBot
) -> None:
    up = after(StatusArrived(status()), JobsArrived((job(),)), JobChosen("job_1"))
    engine = Engine(window, up)
    qtbot.waitUntil(lambda: bool(engine.asked))
    engine.state = apply(engine.state, JobDeleted(JobUndo("job_1", "articles.csv", "restore")))
    engine.answer()  # comes too late, nobody looks at that batch by now
    engine.state = apply(engine.state, JobUndone(job()))
    show(window, engine.state)
    qtbot.waitUntil(lambda: bool(engine.asked), timeout=2000)
    engine.answer()
    assert window.page.model.data(window.page.model.index(0, STATE)) == "Done"
