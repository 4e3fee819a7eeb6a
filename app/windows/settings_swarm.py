"""The settings' page about where the node belongs."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from app.settings_presenters import SettingsView
from app.windows.page_layout import row, stack
from app.windows.swarm_choice import SwarmChoice


class SwarmPart(QWidget):
    """Where the node belongs, and where else it could.

    Signals:
        change_wanted: A `Choice`.
    """

    change_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view: SettingsView | None = None
        self._now = QLabel(wordWrap=True)
        self.copy = QPushButton(self.tr("&Copy the invite"))
        self.choice = SwarmChoice()
        self.change = QPushButton(self.tr("Change &swarm"))
        self._refusal = QLabel(wordWrap=True)
        self._refusal.hide()
        stack(self, self._now, row(self.copy), self.choice, self._refusal, row(self.change))
        self.copy.clicked.connect(self._copy)
        self.change.clicked.connect(lambda: self.change_wanted.emit(self.choice.choice))
        self.choice.changed.connect(self._draw)
        self.choice.refused.connect(self._refuse)

    def show_view(self, view: SettingsView) -> None:
        """Draw `view`."""
        self._view = view
        self._now.setText(view.swarm)
        self.copy.setVisible(bool(view.invite))
        self._draw()

    def _draw(self) -> None:
        view, chosen = self._view, self.choice.choice
        leaves = chosen.way.value != "alone" or (view is not None and view.is_in_swarm)
        self._refusal.hide()
        self.change.setEnabled(
            view is not None and not view.changing and chosen.is_complete and leaves
        )

    def _refuse(self, text: str) -> None:
        self._refusal.setText(text)
        self._refusal.show()

    def _copy(self) -> None:
        if self._view is not None:
            QGuiApplication.clipboard().setText(self._view.invite)
