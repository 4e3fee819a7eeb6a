from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, Qt, QUrl
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
    ChatDeleted,
    ChatOpened,
    ChatOpening,
    ChatsListed,
    DraftCounted,
    PresetsListed,
)
from app.chat_presenters import chat_view, sidebar_view
from app.messages import EngineStopped, Message, StatusArrived
from app.settings import Settings
from app.state import AppState
from app.windows.chat import ChatWindow
from app.windows.text_part import TextPart
from engine.localapi.chats import ChatList, MessagePage, Preset, Sampling
from engine.localapi.running import Home
from tests.support.app_states import after, answer, answered, begun, grew, info, question, status

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
        self.window.show_view(
            chat_view(self.state, NOW, str), sidebar_view(self.state.chats, NOW, str)
        )

    def read(self, expected: str) -> None:
        """Wait until the conversation reads `expected`."""
        transcript = self.window.transcript
        self.qtbot.waitUntil(lambda: transcript.plain_text() == expected, timeout=2000)


@pytest.fixture
def chat(qtbot: QtBot, tmp_path: Path) -> Shown:
    return Shown(qtbot, tmp_path)


def test_enter_sends_and_the_field_is_emptied_when_it_has_been_taken(
    chat: Shown, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(chat.window.asked) as asked:
        qtbot.keyClicks(chat.window.composer.edit, "Why?")
        qtbot.keyClick(chat.window.composer.edit, Qt.Key.Key_Return)
    assert asked.args == ["Why?", (), None]
    chat.hear(AnswerAsked())
    assert chat.window.composer.edit.toPlainText() == "Why?"
    chat.hear(*begun(1))
    assert chat.window.composer.edit.toPlainText() == ""


def test_refused_message_stays_in_the_field(chat: Shown, qtbot: QtBot) -> None:
    qtbot.keyClicks(chat.window.composer.edit, "Why?")
    chat.hear(AnswerAsked(), AnswerLost("Not ready."))
    assert chat.window.composer.edit.toPlainText() == "Why?"
    assert "Not ready." in texts(chat)


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
    chat.hear(*begun(1, "What is\na shoal?"))
    chat.read("What is\na shoal?\n…")
    chat.hear(grew("Many ", 1, 0.0), grew("**fish**", 2, 0.1))
    chat.read("What is\na shoal?\nMany fish")
    chat.hear(grew(".\n\nTogether", 3, 0.2), AnswerEnded(1, answer(2, "Many fish.\n\nTogether", 1)))
    chat.read("What is\na shoal?\nMany fish.\nTogether")


def test_code_appears_with_its_language_and_can_be_copied(chat: Shown, qtbot: QtBot) -> None:
    chat.hear(*begun(1))
    for number, piece in enumerate("See:\n\n```python\nx = 1\nif x:\n    y()\n```\n\nDone"):
        chat.hear(grew(piece, number + 1, number / 100))
    chat.read("Why?\nSee:\nx = 1\nif x:\n    y()\nDone")
    assert "python" in texts(chat)
    copy = next(b for b in buttons(chat) if b.accessibleName() == "Copy the code")
    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text() == "x = 1\nif x:\n    y()\n"
    assert copy.text() == "Copied"


def test_stop_button_and_escape_stop_the_answer(chat: Shown, qtbot: QtBot) -> None:
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


def test_failed_answer_shows_why_and_can_be_retried(chat: Shown, qtbot: QtBot) -> None:
    failed = answer(2, "Bec", 1, ending="failed", failure="No route. Try again.")
    chat.hear(*begun(1), AnswerEnded(1, failed))
    assert chat.window.failure.isVisible()
    assert "No route. Try again." in texts(chat)
    with qtbot.waitSignal(chat.window.retry_wanted):
        qtbot.mouseClick(button(chat, "Retry"), Qt.MouseButton.LeftButton)
    chat.hear(AnswerAsked(), AnswerBegun(1, None, answer(3, "", 1, ending=None, siblings=(2, 3))))
    assert not chat.window.failure.isVisible()
    chat.read("Why?\n…")


def test_earlier_message_is_edited_in_the_field_and_can_be_left(chat: Shown, qtbot: QtBot) -> None:
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


def test_branches_are_shown_by_number_and_can_be_switched(chat: Shown, qtbot: QtBot) -> None:
    again = AnswerBegun(1, None, answer(5, "", 1, ending=None, siblings=(2, 4, 5)))
    over = AnswerEnded(1, answer(5, "Other", 1, siblings=(2, 4, 5)))
    chat.hear(*answered("Why?", "So"), AnswerAsked(), again, over)
    chat.read("Why?\nOther")
    assert "3/3" in texts(chat)
    before = next(b for b in buttons(chat) if b.accessibleName() == "Show the version before")
    with qtbot.waitSignal(chat.window.transcript.branch_wanted) as wanted:
        qtbot.mouseClick(before, Qt.MouseButton.LeftButton)
    assert wanted.args == [4]


def test_new_chat_empties_the_conversation(chat: Shown, qtbot: QtBot) -> None:
    chat.hear(*answered("Why?", "Because"))
    chat.read("Why?\nBecause")
    with qtbot.waitSignal(chat.window.clear_wanted):
        qtbot.keyClick(chat.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    chat.hear(ChatBegun())
    chat.read("")
    chat.hear(*answered("Else?", "Yes"))
    chat.read("Else?\nYes")


def test_conversations_are_found_renamed_deleted_and_brought_back(
    chat: Shown, qtbot: QtBot
) -> None:
    chat.hear(ChatsListed("", None, ChatList(chats=(info(1), info(2, "Eels")), more=True)))
    sidebar = chat.window.sidebar
    with qtbot.waitSignal(sidebar.chosen) as chosen:
        sidebar.list.setCurrentIndex(sidebar.model.index(1))
    assert chosen.args == [2]
    with qtbot.waitSignal(sidebar.sought) as sought:
        qtbot.keyClicks(sidebar.search, "herr")
    assert sought.args == ["herr"]
    with qtbot.waitSignal(sidebar.more_wanted) as more:
        sidebar.model.fetchMore(QModelIndex())
    assert more.args == [2]
    with qtbot.waitSignal(sidebar.renamed) as renamed:
        sidebar.model.setData(sidebar.model.index(0), " Shoals ")
    assert renamed.args == [1, "Shoals"]
    chat.hear(ChatDeleted(info(2, "Eels")))
    assert sidebar.model.rowCount() == 1
    with qtbot.waitSignal(sidebar.undo_wanted):
        qtbot.mouseClick(button(chat, "Undo"), Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("key", [Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_D])
def test_no_single_key_deletes_a_conversation(chat: Shown, qtbot: QtBot, key: Qt.Key) -> None:
    chat.hear(ChatsListed("", None, ChatList(chats=(info(1), info(2, "Eels")), more=False)))
    sidebar = chat.window.sidebar
    heard: list[int] = []
    sidebar.delete_wanted.connect(heard.append)
    chat.window.header.delete_wanted.connect(lambda: heard.append(0))
    sidebar.list.setCurrentIndex(sidebar.model.index(1))
    for widget in (sidebar.list, sidebar.new, chat.window.composer.edit, chat.window):
        qtbot.keyClick(widget, key)
    assert heard == []
    assert sidebar.model.rowCount() == 2


def test_text_files_are_attached_and_others_refused(
    chat: Shown, qtbot: QtBot, tmp_path: Path
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


def test_context_that_is_too_full_is_told_in_another_colour(chat: Shown) -> None:
    def colour() -> str:
        label = next(one for one in chat.window.findChildren(QLabel) if "tokens" in one.text())
        return label.palette().color(label.foregroundRole()).name()

    chat.hear(DraftCounted(100, 8192))
    assert "100 of 8,192 tokens" in texts(chat)
    calm = colour()
    chat.hear(DraftCounted(9000, 8192))
    assert colour() != calm


def test_settings_are_told_when_the_hand_rests_and_unticked_ones_not_at_all(
    chat: Shown, qtbot: QtBot
) -> None:
    chat.hear(*answered("Why?", "So"))
    qtbot.mouseClick(button(chat, "Settings"), Qt.MouseButton.LeftButton)
    panel = chat.window.panel
    temperature = panel.numbers["temperature"]
    assert not temperature.field.isEnabled()
    with qtbot.waitSignal(panel.changed) as changed:
        qtbot.keyClicks(panel.prompt, "Be brief.")
        temperature.wanted.click()
        temperature.field.setValue(0.3)
    settings = changed.args[0]
    assert settings.system_prompt == "Be brief."
    assert settings.sampling.model_dump(exclude_none=True) == {"temperature": 0.3}
    panel.numbers["seed"].wanted.click()
    pending = panel.take_pending()
    assert pending is not None
    assert pending.sampling.seed == 1
    assert panel.take_pending() is None


def test_settings_of_another_conversation_are_shown(chat: Shown) -> None:
    chat.hear(*answered("Why?", "So"))
    known = info(2, "Eels", system_prompt="Be long.", sampling={"top_k": 7})
    chat.hear(ChatOpening(2), ChatOpened(known, MessagePage(messages=(), more=False)))
    panel = chat.window.panel
    assert panel.prompt.toPlainText() == "Be long."
    assert (panel.numbers["top_k"].value(), panel.numbers["top_p"].value()) == (7, None)


def test_preset_sets_prompt_and_sampling_together(chat: Shown, qtbot: QtBot) -> None:
    brief = Preset(name="Brief", system_prompt="Be brief.", sampling=Sampling(temperature=0.2))
    chat.hear(PresetsListed((brief,)))
    panel = chat.window.panel
    panel.show()
    with qtbot.waitSignal(panel.changed) as changed:
        panel.preset.setCurrentIndex(1)
        panel.preset.activated.emit(1)
    assert changed.args[0].system_prompt == "Be brief."
    assert panel.numbers["temperature"].value() == 0.2
    with qtbot.waitSignal(panel.preset_dropped) as dropped:
        qtbot.mouseClick(panel.drop, Qt.MouseButton.LeftButton)
    assert dropped.args == ["Brief"]
    panel.prompt.setPlainText("Be otherwise.")
    qtbot.waitUntil(lambda: panel.preset.currentIndex() == 0)


def test_ten_thousand_messages_are_drawn_near_the_reader_only(chat: Shown, qtbot: QtBot) -> None:
    turns = tuple(
        (question if at % 2 else answer)(at, f"message {at}\n\nwith two paragraphs", at - 1)
        for at in range(1, 10_001)
    )
    page = MessagePage(messages=turns, more=True)
    chat.hear(ChatOpening(1), ChatOpened(info(), page))
    transcript = chat.window.transcript
    bar = transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: len(transcript.cards()) > 10)
    assert transcript.cards()[-1].message.id == 10_000
    assert bar.value() == bar.maximum()
    for _ in range(40):
        bar.setValue(0)
        qtbot.wait(10)
        assert len(transcript.cards()) <= 60
    reached = transcript.cards()[0].message.id
    assert reached < 9_960
    ids = [card.message.id for card in transcript.cards()]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    transcript.go_to_end()
    qtbot.waitUntil(lambda: transcript.cards()[-1].message.id == 10_000)
    assert bar.value() == bar.maximum()


def test_older_messages_are_asked_for_at_the_top_and_nothing_jumps(
    chat: Shown, qtbot: QtBot
) -> None:
    turns = tuple(
        (question if at % 2 else answer)(at, f"message {at}", at - 1) for at in range(41, 81)
    )
    chat.hear(ChatOpening(1), ChatOpened(info(), MessagePage(messages=turns, more=True)))
    transcript = chat.window.transcript
    bar = transcript.verticalScrollBar()
    with qtbot.waitSignal(transcript.older_wanted):
        for _ in range(60):
            bar.setValue(0)
            qtbot.wait(5)


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
    assert asked.args[0] == "Hello"


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
    chat.hear(*begun(1, "Tell"), grew(long, 1, 0.0))
    bar = chat.window.transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    bar.setValue(0)
    qtbot.waitUntil(lambda: len(chat.window.transcript.cards()) == 2)  # the question comes above
    before = bar.value()
    chat.hear(grew("\n\nthe end", 2, 0.1))
    qtbot.waitUntil(lambda: chat.window.transcript.plain_text().endswith("the end"))
    assert bar.value() == before < bar.maximum() // 2


def test_every_control_has_a_name_and_takes_the_keyboard(chat: Shown) -> None:
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


def test_window_follows_the_desktop_into_the_dark(chat: Shown, qtbot: QtBot) -> None:
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


def test_answer_cannot_make_us_read_files_or_open_programs(
    chat: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(
        "app.windows.text_part.QDesktopServices.openUrl", lambda url: opened.append(url.toString())
    )
    picture = QUrl("file:///etc/hostname")
    chat.hear(*answered("Why?", "![x](file:///etc/hostname)"))
    chat.qtbot.waitUntil(lambda: len(chat.window.findChildren(TextPart)) == 2)
    part = chat.window.findChildren(TextPart)[1]
    assert part.loadResource(2, picture) is None
    for link in ("file:///bin/sh", "vscode://x", "https://example.org/"):
        part.anchorClicked.emit(QUrl(link))
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


def buttons(chat: Shown) -> list[QAbstractButton]:
    return [one for one in chat.window.findChildren(QAbstractButton) if one.isVisible()]


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
    chat.hear(*begun(1, "Count."), grew(lines, 1, 1.0))
    bar = chat.window.transcript.verticalScrollBar()
    chat.qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    before = bar.maximum()
    chat.hear(AnswerLost("The engine has ended. Try again when it is back."))
    chat.qtbot.waitUntil(lambda: bar.maximum() > before)
    chat.qtbot.wait(200)
    assert bar.value() == bar.maximum()
