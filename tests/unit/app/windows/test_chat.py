"""What a person writes and presses in the chat window, and what the engine's state does to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QTextBrowser,
)
from pytestqt.qtbot import QtBot

from app.chat_messages import (
    AnswerAsked,
    AnswerBegun,
    AnswerEnded,
    AnswerLost,
    ChatBegun,
    ChatsListed,
    DraftCounted,
)
from app.messages import EngineStopped, StatusArrived
from engine.localapi.chats import ChatList
from tests.support.app_states import answer, answered, begun, grew, info, status
from tests.support.desktop.shown_chat import ShownChat, button, buttons, texts

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


def test_enter_sends_and_the_field_is_emptied_when_it_has_been_taken(
    chat: ShownChat, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(chat.window.asked) as asked:
        qtbot.keyClicks(chat.window.composer.edit, "Why?")
        qtbot.keyClick(chat.window.composer.edit, Qt.Key.Key_Return)
    assert asked.args == ["Why?", (), None]
    chat.hear(AnswerAsked())
    assert chat.window.composer.edit.toPlainText() == "Why?"
    chat.hear(*begun(1))
    assert chat.window.composer.edit.toPlainText() == ""


def test_refused_message_stays_in_the_field(chat: ShownChat, qtbot: QtBot) -> None:
    qtbot.keyClicks(chat.window.composer.edit, "Why?")
    chat.hear(AnswerAsked(), AnswerLost("Not ready."))
    assert chat.window.composer.edit.toPlainText() == "Why?"
    assert "Not ready." in texts(chat)


def test_shift_enter_starts_a_line_and_the_field_grows(chat: ShownChat, qtbot: QtBot) -> None:
    edit = chat.window.composer.edit
    before = edit.height()
    with qtbot.assertNotEmitted(chat.window.asked):
        qtbot.keyClicks(edit, "one")
        qtbot.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        qtbot.keyClicks(edit, "two")
    assert edit.toPlainText() == "one\ntwo"
    assert edit.height() > before


def test_blank_message_cannot_be_sent(chat: ShownChat, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(chat.window.asked):
        qtbot.keyClicks(chat.window.composer.edit, "   ")
        qtbot.keyClick(chat.window.composer.edit, Qt.Key.Key_Return)
    assert not chat.window.composer.button.isEnabled()


def test_stop_button_and_escape_stop_the_answer(chat: ShownChat, qtbot: QtBot) -> None:
    chat.hear(*begun(1), grew("Because", 1, 0.0))
    stop = chat.window.composer.button
    assert stop.text() == "Stop"
    assert stop.accessibleName() == "Stop the answer"
    with qtbot.waitSignal(chat.window.stop_wanted):
        qtbot.mouseClick(stop, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(chat.window.stop_wanted):
        qtbot.keyClick(chat.window, Qt.Key.Key_Escape)
    chat.hear(AnswerEnded(1, answer(2, "Because", 1, ending="stopped")))
    chat.read("Why?\nBecause\nStopped")
    assert stop.text() == "Send"
    with qtbot.waitSignal(chat.window.transcript.continue_wanted) as wanted:
        qtbot.mouseClick(button(chat, "Continue"), Qt.MouseButton.LeftButton)
    assert wanted.args[0].id == 2


def test_failed_answer_shows_why_and_can_be_retried(chat: ShownChat, qtbot: QtBot) -> None:
    failed = answer(2, "Bec", 1, ending="failed", failure="No route. Try again.")
    chat.hear(*begun(1), AnswerEnded(1, failed))
    assert chat.window.failure.isVisible()
    assert "No route. Try again." in texts(chat)
    with qtbot.waitSignal(chat.window.retry_wanted):
        qtbot.mouseClick(button(chat, "Retry"), Qt.MouseButton.LeftButton)
    chat.hear(AnswerAsked(), AnswerBegun(1, None, answer(3, "", 1, ending=None, siblings=(2, 3))))
    assert not chat.window.failure.isVisible()
    chat.read("Why?\n…")


def test_earlier_message_is_edited_in_the_field_and_can_be_left(
    chat: ShownChat, qtbot: QtBot
) -> None:
    chat.hear(*answered("Why?", "So"))
    chat.read("Why?\nSo")
    qtbot.mouseClick(button(chat, "Edit"), Qt.MouseButton.LeftButton)
    edit = chat.window.composer.edit
    assert edit.toPlainText() == "Why?"
    qtbot.keyClick(chat.window, Qt.Key.Key_Escape)
    assert edit.toPlainText() == ""
    qtbot.mouseClick(button(chat, "Edit"), Qt.MouseButton.LeftButton)
    qtbot.keyClicks(edit, "!")
    with qtbot.waitSignal(chat.window.asked) as asked:
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    text, _, edited = asked.args
    assert (text, edited.id) == ("Why?!", 1)


def test_branches_are_shown_by_number_and_can_be_switched(chat: ShownChat, qtbot: QtBot) -> None:
    again = AnswerBegun(1, None, answer(5, "", 1, ending=None, siblings=(2, 4, 5)))
    over = AnswerEnded(1, answer(5, "Other", 1, siblings=(2, 4, 5)))
    chat.hear(*answered("Why?", "So"), AnswerAsked(), again, over)
    chat.read("Why?\nOther")
    assert "3/3" in texts(chat)
    before = next(b for b in buttons(chat) if b.accessibleName() == "Show the version before")
    with qtbot.waitSignal(chat.window.transcript.branch_wanted) as wanted:
        qtbot.mouseClick(before, Qt.MouseButton.LeftButton)
    assert wanted.args == [4]


def test_new_chat_empties_the_conversation(chat: ShownChat, qtbot: QtBot) -> None:
    chat.hear(*answered("Why?", "Because"))
    chat.read("Why?\nBecause")
    with qtbot.waitSignal(chat.window.clear_wanted):
        qtbot.keyClick(chat.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    chat.hear(ChatBegun())
    chat.read("")
    chat.hear(*answered("Else?", "Yes"))
    chat.read("Else?\nYes")


def test_text_files_are_attached_and_others_refused(
    chat: ShownChat, qtbot: QtBot, tmp_path: Path
) -> None:
    good, binary = tmp_path / "eel.txt", tmp_path / "eel.png"
    good.write_text("Eels migrate.")
    binary.write_bytes(b"\x89PNG\0\0")
    with qtbot.waitSignal(chat.window.draft_changed) as draft:
        chat.window.composer.attach_files([str(good), str(binary)])
    assert draft.args == [("Eels migrate.",)]
    assert "eel.txt" in texts(chat)
    assert "eel.png is not a text file" in texts(chat)
    with qtbot.waitSignal(chat.window.asked) as asked:
        qtbot.keyClick(chat.window.composer.edit, Qt.Key.Key_Return)
    assert [file.text for file in asked.args[1]] == ["Eels migrate."]
    away = next(b for b in buttons(chat) if b.accessibleName() == "Do not attach eel.txt")
    qtbot.mouseClick(away, Qt.MouseButton.LeftButton)
    assert chat.window.composer.files.files == ()


def test_context_that_is_too_full_is_told_in_another_colour(chat: ShownChat) -> None:
    def colour() -> str:
        label = next(one for one in chat.window.findChildren(QLabel) if "tokens" in one.text())
        return label.palette().color(label.foregroundRole()).name()

    chat.hear(DraftCounted(100, 8192))
    assert "100 of 8,192 tokens" in texts(chat)
    calm = colour()
    chat.hear(DraftCounted(9000, 8192))
    assert colour() != calm


def test_typed_text_stays_while_the_engine_starts(chat: ShownChat, qtbot: QtBot) -> None:
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
    assert asked.args[0] == "Hello"


def test_paused_chat_can_be_resumed_in_place(chat: ShownChat, qtbot: QtBot) -> None:
    chat.hear(StatusArrived(status(state="paused", can_chat=False)))
    with qtbot.waitSignal(chat.window.resume_wanted):
        qtbot.mouseClick(button(chat, "Resume"), Qt.MouseButton.LeftButton)


def test_stopped_engine_can_be_started_in_place(chat: ShownChat, qtbot: QtBot) -> None:
    chat.hear(EngineStopped("It ended 5 times."))
    assert "The engine is not running. It ended 5 times." in texts(chat)
    with qtbot.waitSignal(chat.window.start_wanted):
        qtbot.mouseClick(button(chat, "Try again"), Qt.MouseButton.LeftButton)


def test_every_control_has_a_name_and_takes_the_keyboard(chat: ShownChat) -> None:
    code = "See\n\n```python\nx\n```"
    failed = answer(2, code, 1, ending="failed", failure="No.", siblings=(2, 3))
    chat.hear(*begun(1), AnswerEnded(1, failed))
    chat.hear(ChatsListed("", None, ChatList(chats=(info(1),), more=False)))
    chat.qtbot.waitUntil(lambda: "python" in texts(chat))
    controls = [
        *chat.window.findChildren(QAbstractButton),
        *chat.window.findChildren(QPlainTextEdit),
        *chat.window.findChildren(QTextBrowser),
        *chat.window.findChildren(QLineEdit),
        chat.window.sidebar.list,
        chat.window.transcript,
    ]
    visible = [control for control in controls if control.isVisible()]
    assert len(visible) >= 16
    for control in visible:
        assert control.accessibleName(), control
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control.accessibleName()


def test_window_follows_the_desktop_into_the_dark(chat: ShownChat, qtbot: QtBot) -> None:
    chat.hear(*answered("Why?", "Because"))
    light = chat.window.grab().toImage().pixelColor(800, 300).lightness()
    before = QApplication.palette()
    dark = QPalette(before)
    for role, colour in ((QPalette.ColorRole.Base, "#1b1c1f"), (QPalette.ColorRole.Text, "#eee")):
        dark.setColor(role, QColor(colour))
    try:
        QApplication.setPalette(dark)
        qtbot.wait(80)
        assert light > 200
        assert chat.window.grab().toImage().pixelColor(800, 300).lightness() < 60
        qtbot.waitUntil(lambda: chat.window.transcript.plain_text() == "Why?\nBecause")
    finally:
        QApplication.setPalette(before)


def test_window_comes_back_at_its_last_size(chat: ShownChat, qtbot: QtBot, tmp_path: Path) -> None:
    chat.window.resize(612, 534)
    chat.window.close()
    again = ShownChat(qtbot, tmp_path)
    assert (again.window.width(), again.window.height()) == (612, 534)
