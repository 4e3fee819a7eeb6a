from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QPlainTextEdit, QProgressBar
from pytestqt.qtbot import QtBot

from app.messages import (
    ChatAsked,
    ChatCleared,
    ChatEnded,
    ChatFailed,
    ChatRetried,
    ChatToken,
    Ending,
    EngineStopped,
    Message,
    StatusArrived,
)
from app.presenters import chat_view
from app.settings import Settings
from app.state import AppState
from app.windows.chat import ChatWindow
from engine.localapi.running import Home
from tests.support.app_states import after, answered, status

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)


class Shown:
    """A chat window and the state that it draws."""

    def __init__(self, qtbot: QtBot, home: Path) -> None:
        self.qtbot = qtbot
        self.window = ChatWindow(Settings(Home.under(home)))
        qtbot.addWidget(self.window)
        self.state = AppState()
        self.hear(StatusArrived(status()))
        self.window.bring_up()
        qtbot.waitExposed(self.window)

    def hear(self, *messages: Message) -> None:
        self.state = after(*messages, start=self.state)
        self.window.show_view(chat_view(self.state, NOW, str))

    def read(self, expected: str) -> None:
        """Wait until the conversation reads `expected`."""
        transcript = self.window.transcript
        self.qtbot.waitUntil(lambda: transcript.toPlainText() == expected, timeout=2000)


@pytest.fixture
def chat(qtbot: QtBot, tmp_path: Path) -> Shown:
    return Shown(qtbot, tmp_path)


def test_enter_sends_and_empties_the_field(chat: Shown, qtbot: QtBot) -> None:
    with qtbot.waitSignal(chat.window.asked) as asked:
        qtbot.keyClicks(chat.window.composer.edit, "Why?")
        qtbot.keyClick(chat.window.composer.edit, Qt.Key.Key_Return)
    assert asked.args == ["Why?"]
    assert chat.window.composer.edit.toPlainText() == ""


def test_shift_enter_starts_a_line_and_the_field_grows(chat: Shown, qtbot: QtBot) -> None:
    edit = chat.window.composer.edit
    before = edit.height()
    with qtbot.assertNotEmitted(chat.window.asked):
        qtbot.keyClicks(edit, "one")
        qtbot.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        qtbot.keyClicks(edit, "two")
    assert edit.toPlainText() == "one\ntwo"
    assert edit.height() > before


def test_blank_message_cannot_be_sent(chat: Shown, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(chat.window.asked):
        qtbot.keyClicks(chat.window.composer.edit, "   ")
        qtbot.keyClick(chat.window.composer.edit, Qt.Key.Key_Return)
    assert not chat.window.composer.button.isEnabled()


def test_answer_appears_as_its_tokens_come(chat: Shown) -> None:
    chat.hear(ChatAsked("What is\na shoal?"))
    chat.read("What is\na shoal?\n…")
    chat.hear(ChatToken("Many ", 0.0), ChatToken("**fish**", 0.1))
    chat.read("What is\na shoal?\nMany fish")
    chat.hear(ChatToken(".\n\nTogether", 0.2), ChatEnded(Ending.COMPLETE))
    chat.read("What is\na shoal?\nMany fish.\nTogether")


def test_stop_button_and_escape_stop_the_answer(chat: Shown, qtbot: QtBot) -> None:
    chat.hear(ChatAsked("Why?"), ChatToken("Because", 0.0))
    button = chat.window.composer.button
    assert button.text() == "Stop"
    assert button.accessibleName() == "Stop the answer"
    with qtbot.waitSignal(chat.window.stop_wanted):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(chat.window.stop_wanted):
        qtbot.keyClick(chat.window, Qt.Key.Key_Escape)
    chat.hear(ChatEnded(Ending.STOPPED))
    chat.read("Why?\nBecause\nStopped")
    assert button.text() == "Send"


def test_failed_answer_shows_why_and_can_be_retried(chat: Shown, qtbot: QtBot) -> None:
    chat.hear(ChatAsked("Why?"), ChatToken("Bec", 0.0), ChatFailed("No route. Try again."))
    assert chat.window.failure.isVisible()
    assert "No route. Try again." in texts(chat)
    retry = button(chat, "Retry")
    with qtbot.waitSignal(chat.window.retry_wanted):
        qtbot.mouseClick(retry, Qt.MouseButton.LeftButton)
    chat.hear(ChatRetried())
    assert not chat.window.failure.isVisible()
    chat.read("Why?\n…")
    chat.hear(ChatToken("Because.", 1.0), ChatEnded(Ending.COMPLETE))
    chat.read("Why?\nBecause.")


def test_new_chat_empties_the_conversation(chat: Shown, qtbot: QtBot) -> None:
    chat.hear(*answered("Why?", "Because"))
    chat.read("Why?\nBecause")
    with qtbot.waitSignal(chat.window.clear_wanted):
        qtbot.keyClick(chat.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    chat.hear(ChatCleared())
    chat.read("")
    chat.hear(*answered("Else?", "Yes"))
    chat.read("Else?\nYes")


def test_typed_text_stays_while_the_engine_starts(chat: Shown, qtbot: QtBot) -> None:
    progress = {"what": "Downloading X", "done": 1, "total": 4, "unit": "bytes"}
    chat.hear(StatusArrived(status(state="starting", can_chat=False, progress=progress)))
    assert "Downloading X: 25 % of 4 B" in texts(chat)
    bar = chat.window.notice.findChild(QProgressBar)
    assert bar is not None
    assert bar.isVisible()
    assert bar.value() / bar.maximum() == 0.25
    with qtbot.assertNotEmitted(chat.window.asked):
        qtbot.keyClicks(chat.window.composer.edit, "Hello")
        qtbot.keyClick(chat.window.composer.edit, Qt.Key.Key_Return)
    chat.hear(StatusArrived(status()))
    assert not chat.window.notice.isVisible()
    with qtbot.waitSignal(chat.window.asked) as asked:
        qtbot.keyClick(chat.window.composer.edit, Qt.Key.Key_Return)
    assert asked.args == ["Hello"]


def test_paused_chat_can_be_resumed_in_place(chat: Shown, qtbot: QtBot) -> None:
    chat.hear(StatusArrived(status(state="paused", can_chat=False)))
    with qtbot.waitSignal(chat.window.resume_wanted):
        qtbot.mouseClick(button(chat, "Resume"), Qt.MouseButton.LeftButton)


def test_stopped_engine_can_be_started_in_place(chat: Shown, qtbot: QtBot) -> None:
    chat.hear(EngineStopped("It ended 5 times."))
    assert "The engine is not running. It ended 5 times." in texts(chat)
    with qtbot.waitSignal(chat.window.start_wanted):
        qtbot.mouseClick(button(chat, "Try again"), Qt.MouseButton.LeftButton)


def test_reader_who_scrolled_up_is_not_pulled_down(chat: Shown, qtbot: QtBot) -> None:
    long = "\n\n".join(f"paragraph {n}" for n in range(60))
    chat.hear(ChatAsked("Tell"), ChatToken(long, 0.0))
    bar = chat.window.transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    bar.setValue(0)
    chat.hear(ChatToken("\n\nthe end", 0.1))
    qtbot.waitUntil(lambda: chat.window.transcript.toPlainText().endswith("the end"))
    assert bar.value() == 0


def test_every_control_has_a_name_and_takes_the_keyboard(chat: Shown) -> None:
    chat.hear(ChatAsked("Why?"), ChatFailed("No."))
    controls = [
        *chat.window.findChildren(QAbstractButton),
        *chat.window.findChildren(QPlainTextEdit),
        chat.window.transcript,
    ]
    visible = [control for control in controls if control.isVisible()]
    assert len(visible) >= 5
    for control in visible:
        assert control.accessibleName(), control
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control.accessibleName()


def test_window_follows_the_desktop_into_the_dark(chat: Shown, qtbot: QtBot) -> None:
    chat.hear(*answered("Why?", "Because"))
    light = chat.window.grab().toImage().pixelColor(5, 300).lightness()
    before = QApplication.palette()
    dark = QPalette(before)
    for role, colour in ((QPalette.ColorRole.Base, "#1b1c1f"), (QPalette.ColorRole.Text, "#eee")):
        dark.setColor(role, QColor(colour))
    try:
        QApplication.setPalette(dark)
        qtbot.wait(80)
        assert light > 200
        assert chat.window.grab().toImage().pixelColor(5, 300).lightness() < 60
        assert chat.window.transcript.toPlainText() == "Why?\nBecause"
    finally:
        QApplication.setPalette(before)


def test_answer_cannot_make_us_read_files_or_open_programs(
    chat: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(
        "app.windows.transcript.QDesktopServices.openUrl", lambda url: opened.append(url.toString())
    )
    picture = QUrl("file:///etc/hostname")
    assert chat.window.transcript.loadResource(2, picture) is None
    for link in ("file:///bin/sh", "vscode://x", "https://example.org/"):
        chat.window.transcript.anchorClicked.emit(QUrl(link))
    assert opened == ["https://example.org/"]


def test_window_comes_back_at_its_last_size(chat: Shown, qtbot: QtBot, tmp_path: Path) -> None:
    chat.window.resize(612, 534)
    chat.window.close()
    again = Shown(qtbot, tmp_path)
    assert (again.window.width(), again.window.height()) == (612, 534)


def texts(chat: Shown) -> str:
    """What a screen reader would say of the visible controls."""
    return "\n".join(
        label.text() for label in chat.window.findChildren(QLabel) if label.isVisible()
    )


def button(chat: Shown, label: str) -> QAbstractButton:
    found = [
        one
        for one in chat.window.findChildren(QAbstractButton)
        if one.isVisible() and one.text() == label
    ]
    assert len(found) == 1, label
    return found[0]


def test_end_of_the_answer_stays_in_sight_when_a_notice_takes_room(chat: Shown) -> None:
    lines = "\n\n".join(f"Line {number}." for number in range(60))
    chat.hear(ChatAsked("Count."), ChatToken(lines, 1.0))
    bar = chat.window.transcript.verticalScrollBar()
    chat.qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    before = bar.maximum()
    chat.hear(ChatFailed("The engine has ended. Try again when it is back."))
    chat.qtbot.waitUntil(lambda: bar.maximum() > before)
    chat.qtbot.wait(200)
    assert bar.value() == bar.maximum()
