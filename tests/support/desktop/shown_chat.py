"""A chat window as a test shows it, and what is seen in it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from PySide6.QtWidgets import QAbstractButton, QLabel
from pytestqt.qtbot import QtBot

from app.chat_presenters import chat_view, sidebar_view
from app.messages import Message, StatusArrived
from app.settings import Settings
from app.state import AppState
from app.windows.chat import ChatWindow
from engine.localapi.running import Home
from tests.support.app_states import after, status

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)


class ShownChat:
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


def texts(chat: ShownChat) -> str:
    """What a screen reader would say of the visible controls."""
    return "\n".join(
        label.text() for label in chat.window.findChildren(QLabel) if label.isVisible()
    )


def buttons(chat: ShownChat) -> list[QAbstractButton]:
    return [one for one in chat.window.findChildren(QAbstractButton) if one.isVisible()]


def button(chat: ShownChat, label: str) -> QAbstractButton:
    found = [
        one
        for one in chat.window.findChildren(QAbstractButton)
        if one.isVisible() and one.text() == label
    ]
    assert len(found) == 1, label
    return found[0]
