"""A conversation as the chat window draws it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat_messages import AnswerEnded, AnswerLost, ChatOpened, ChatOpening
from app.windows.text_part import TextPart
from engine.localapi.chats import MessagePage
from tests.support.app_states import answer, answered, begun, grew, info, question
from tests.support.desktop.shown_chat import ShownChat, buttons, texts

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


def test_answer_appears_as_its_tokens_come(chat: ShownChat) -> None:
    chat.hear(*begun(1, "What is\na shoal?"))
    chat.read("What is\na shoal?\n…")
    chat.hear(grew("Many ", 1, 0.0), grew("**fish**", 2, 0.1))
    chat.read("What is\na shoal?\nMany fish")
    chat.hear(grew(".\n\nTogether", 3, 0.2), AnswerEnded(1, answer(2, "Many fish.\n\nTogether", 1)))
    chat.read("What is\na shoal?\nMany fish.\nTogether")


def test_code_appears_with_its_language_and_can_be_copied(chat: ShownChat, qtbot: QtBot) -> None:
    chat.hear(*begun(1))
    for number, piece in enumerate("See:\n\n```python\nx = 1\nif x:\n    y()\n```\n\nDone"):
        chat.hear(grew(piece, number + 1, number / 100))
    chat.read("Why?\nSee:\nx = 1\nif x:\n    y()\nDone")
    assert "python" in texts(chat)
    copy = next(b for b in buttons(chat) if b.accessibleName() == "Copy the code")
    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text() == "x = 1\nif x:\n    y()\n"
    assert copy.text() == "Copied"


def test_ten_thousand_messages_are_drawn_near_the_reader_only(
    chat: ShownChat, qtbot: QtBot
) -> None:
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
    chat: ShownChat, qtbot: QtBot
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


def test_reader_who_scrolled_up_is_not_pulled_down(chat: ShownChat, qtbot: QtBot) -> None:
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


def test_end_of_the_answer_stays_in_sight_when_a_notice_takes_room(chat: ShownChat) -> None:
    lines = "\n\n".join(f"Line {number}." for number in range(60))
    chat.hear(*begun(1, "Count."), grew(lines, 1, 1.0))
    bar = chat.window.transcript.verticalScrollBar()
    chat.qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    before = bar.maximum()
    chat.hear(AnswerLost("The engine has ended. Try again when it is back."))
    chat.qtbot.waitUntil(lambda: bar.maximum() > before)
    chat.qtbot.wait(200)
    assert bar.value() == bar.maximum()


def test_answer_cannot_make_us_read_files_or_open_programs(
    chat: ShownChat, monkeypatch: pytest.MonkeyPatch
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
