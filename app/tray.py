"""The tray icon and its menu."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, Signal, SignalInstance
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.artwork import icon
from app.presenters import Action, Overview

MENU_TEXT_LIMIT = 64
"""Longer reasons are shortened in the menu; the tooltip has all of them."""


class Tray(QObject):
    """Draws an `Overview` and tells what the person chose.

    Signals:
        pause_wanted: Pause, as this `PauseRequest` says.
        resume_wanted: Serve again.
        start_wanted: Start the engine again.
        chat_wanted: Open the chat.
        dashboard_wanted: Open the dashboard.
        batches_wanted: Open the batches.
        settings_wanted: Open the settings.
        update_wanted: Show what there is to know of a new version.
        quit_wanted: End Shoal.
    """

    pause_wanted = Signal(object)
    resume_wanted = Signal()
    start_wanted = Signal()
    chat_wanted = Signal()
    dashboard_wanted = Signal()
    batches_wanted = Signal()
    settings_wanted = Signal()
    update_wanted = Signal()
    quit_wanted = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._shown: Overview | None = None
        self.menu = QMenu()
        self._headline = self.menu.addAction("")
        self._headline.setEnabled(False)
        self._detail = self.menu.addAction("")
        self._detail.setEnabled(False)
        self.menu.addSeparator()
        self._start = self._entry(self.start_wanted)
        self._resume = self._entry(self.resume_wanted)
        self._pauses: list[QAction] = []
        self._below_pauses = self.menu.addSeparator()
        self._chat = self._entry(self.chat_wanted)
        self._dashboard = self._entry(self.dashboard_wanted)
        self._batches = self._entry(self.batches_wanted)
        self._settings = self._entry(self.settings_wanted)
        self._update = self._entry(self.update_wanted)
        self.menu.addSeparator()
        self._quit = self._entry(self.quit_wanted)
        self._icon = QSystemTrayIcon(self)
        self._icon.setContextMenu(self.menu)
        self._icon.activated.connect(self._on_activated)
        self._icon.messageClicked.connect(self.batches_wanted)

    @staticmethod
    def is_available() -> bool:
        """Whether this desktop has a tray now."""
        return QSystemTrayIcon.isSystemTrayAvailable()

    @property
    def is_shown(self) -> bool:
        """Whether the icon is to be seen, as far as the desktop tells."""
        return self.is_available() and self._icon.isVisible()

    def show(self, view: Overview) -> None:
        """Draw `view`; the icon appears with the first one."""
        if view == self._shown:
            return
        self._shown = view
        self._icon.setIcon(icon(view.icon))
        self._icon.setToolTip(view.tooltip)
        self._headline.setText(_short(view.headline))
        self._headline.setIcon(icon(view.icon))
        self._detail.setText(_short(view.detail))
        self._detail.setVisible(bool(view.detail))
        for entry, action in (
            (self._start, view.start),
            (self._resume, view.resume),
            (self._chat, view.chat),
            (self._dashboard, view.dashboard),
            (self._batches, view.batches),
            (self._settings, view.settings),
            (self._update, view.update),
            (self._quit, view.quit),
        ):
            _draw(entry, action)
        self._draw_pauses(view)
        self._icon.show()

    def notify(self, text: str) -> None:
        """Tell that a batch has ended; desktops may show nothing, so windows say it too."""
        self._icon.showMessage("Shoal", text, self._icon.icon())

    def hide(self) -> None:
        """Take the icon away."""
        self._icon.hide()

    def _entry(self, wanted: SignalInstance) -> QAction:
        entry = self.menu.addAction("")
        entry.triggered.connect(lambda: wanted.emit())
        return entry

    def _draw_pauses(self, view: Overview) -> None:
        """One entry for each way to pause; entries are kept, for the menu may be open."""
        while len(self._pauses) < len(view.pauses):
            entry = QAction(self.menu)
            entry.triggered.connect(lambda _=False, entry=entry: self._on_pause(entry))
            self.menu.insertAction(self._below_pauses, entry)
            self._pauses.append(entry)
        for at, entry in enumerate(self._pauses):
            entry.setVisible(at < len(view.pauses))
            if at < len(view.pauses):
                entry.setText(view.pauses[at].label)
                entry.setData(view.pauses[at].request)
                entry.setEnabled(view.pause.enabled)

    def _on_pause(self, entry: QAction) -> None:
        self.pause_wanted.emit(entry.data())

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        # macOS opens the menu with every click, so a click must not do more there.
        if reason is QSystemTrayIcon.ActivationReason.Trigger and sys.platform != "darwin":
            self.chat_wanted.emit()


def _draw(entry: QAction, action: Action) -> None:
    entry.setText(action.label)
    entry.setVisible(action.visible)
    entry.setEnabled(action.enabled)


def _short(text: str) -> str:
    text = text if len(text) <= MENU_TEXT_LIMIT else text[: MENU_TEXT_LIMIT - 1].rstrip() + "…"
    return text.replace("&", "&&")
