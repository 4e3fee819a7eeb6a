"""The small window with the tray's controls, for desktops without a tray."""

from __future__ import annotations

import os

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.artwork import icon
from app.presenters import Overview
from app.windows.pause_button import PauseButton
from app.windows.top_window import TopWindow

EXTENSION_URL = "https://extensions.gnome.org/extension/615/appindicator-support/"
ICON_PX = 44
WIDTH_PX = 540


def on_gnome() -> bool:
    """Whether this desktop is GNOME, which has a tray only by an extension."""
    return "GNOME" in os.environ.get("XDG_CURRENT_DESKTOP", "").upper().split(":")


class HomeWindow(TopWindow):
    """Draws an `Overview` and tells what the person chose.

    Args:
        on_gnome: Whether to name the extension that brings GNOME a tray.

    Signals:
        pause_wanted: Pause, as this `PauseRequest` says.
        resume_wanted: Serve again.
        start_wanted: Start the engine again.
        chat_wanted: Open the chat.
        dashboard_wanted: Open the dashboard.
        batches_wanted: Open the batches.
        settings_wanted: Open the settings.
        quit_wanted: End Shoal.
        closed: The window was closed.
    """

    pause_wanted = Signal(object)
    resume_wanted = Signal()
    start_wanted = Signal()
    chat_wanted = Signal()
    dashboard_wanted = Signal()
    batches_wanted = Signal()
    settings_wanted = Signal()
    quit_wanted = Signal()

    def __init__(self, *, on_gnome: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._facts: tuple[tuple[str, str], ...] = ()
        self.setWindowTitle("Shoal")
        self._icon = QLabel()
        self._icon.setFixedSize(ICON_PX, ICON_PX)
        self._headline = QLabel(wordWrap=True)
        self._headline.setObjectName("headline")
        self._detail = QLabel(wordWrap=True)
        self._detail.setObjectName("hint")
        self.chat = QPushButton()
        self.chat.setObjectName("primary")
        self.dashboard, self.batches, self.settings, self.resume, self.start, self.quit = (
            QPushButton() for _ in range(6)
        )
        self.pause = PauseButton()
        self._note = self._build_note(on_gnome=on_gnome)
        self._grid = QGridLayout()
        self._lay_out()
        for button, wanted in (
            (self.chat, self.chat_wanted),
            (self.dashboard, self.dashboard_wanted),
            (self.batches, self.batches_wanted),
            (self.settings, self.settings_wanted),
            (self.resume, self.resume_wanted),
            (self.start, self.start_wanted),
            (self.quit, self.quit_wanted),
        ):
            button.clicked.connect(wanted)
        self.pause.pause_wanted.connect(self.pause_wanted)
        self.dress()

    def show_view(self, view: Overview) -> None:
        """Draw `view`."""
        self._icon.setPixmap(icon(view.icon).pixmap(ICON_PX, ICON_PX))
        self.setWindowIcon(icon(view.icon))
        self._headline.setText(view.headline)
        self._headline.setAccessibleName(view.headline)
        self._detail.setText(view.detail)
        self._detail.setVisible(bool(view.detail))
        for button, action in (
            (self.chat, view.chat),
            (self.dashboard, view.dashboard),
            (self.batches, view.batches),
            (self.settings, view.settings),
            (self.resume, view.resume),
            (self.start, view.start),
            (self.quit, view.quit),
        ):
            button.setText(action.label)
            button.setAccessibleName(action.label.replace("&", ""))
            button.setVisible(action.visible)
            button.setEnabled(action.enabled)
        self.pause.show_choices(view.pause, view.pauses)
        if view.facts != self._facts:
            self._facts = view.facts
            self._draw_facts()
        QTimer.singleShot(0, self, self._grow)  # new labels count once they are shown

    def bring_up(self) -> None:
        """Show the window before all others, as high as its text needs."""
        width = max(WIDTH_PX, self._column.minimumSize().width())
        self.resize(width, self._column.heightForWidth(width))
        super().bring_up()

    def _grow(self) -> None:
        """Make room for a text that has become longer; never shrink what the person has sized."""
        needed = self._column.heightForWidth(self.width())
        if self.isVisible() and self.height() < needed:
            self.resize(self.width(), needed)

    def _build_note(self, *, on_gnome: bool) -> QLabel:
        text = self.tr(
            "This desktop shows no tray, so Shoal lives in this window and ends when it is closed."
        )
        if on_gnome:
            text += " " + self.tr(
                'The extension <a href="{url}">AppIndicator and KStatusNotifierItem Support</a> '
                "gives it a place in GNOME's top bar."
            ).format(url=EXTENSION_URL)
        note = QLabel(text, wordWrap=True, openExternalLinks=True)
        note.setObjectName("muted")
        note.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        return note

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(3)
        words.addWidget(self._headline)
        words.addWidget(self._detail)
        head = QHBoxLayout()
        head.setSpacing(14)
        head.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)
        self._grid.setContentsMargins(ICON_PX + 14, 0, 0, 0)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (
            self.chat,
            self.dashboard,
            self.batches,
            self.resume,
            self.start,
            self.pause,
        ):
            buttons.addWidget(button)
        buttons.addStretch(1)
        buttons.addWidget(self.settings)
        buttons.addWidget(self.quit)
        line = QFrame()
        line.setObjectName("line")
        whole = self._column = QVBoxLayout(self)
        whole.setContentsMargins(22, 20, 22, 18)
        whole.setSpacing(16)
        whole.addLayout(head)
        whole.addLayout(self._grid)
        whole.addLayout(buttons)
        whole.addStretch(1)
        whole.addWidget(line)
        whole.addWidget(self._note)

    def _draw_facts(self) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for row, (name, value) in enumerate(self._facts):
            label = QLabel(name)
            label.setObjectName("fact")
            number = QLabel(value)
            number.setAccessibleName(f"{name}: {value}")
            self._grid.addWidget(label, row, 0)
            self._grid.addWidget(number, row, 1)
