"""The settings' page about the node's key."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPushButton, QWidget

from app.settings_presenters import SettingsView
from app.windows.page_layout import muted, row, stack

SHORTEST_PASSPHRASE = 8


class IdentityPart(QWidget):
    """A copy of the node's key, under a passphrase.

    Signals:
        backup_wanted: (passphrase, file).
        restore_wanted: (passphrase, file).
    """

    backup_wanted = Signal(str, str)
    restore_wanted = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._busy = False
        self._peer = muted("")
        self._peer.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.passphrase = QLineEdit(
            maxLength=1024, placeholderText=self.tr("Passphrase, at least 8 characters")
        )
        self.passphrase.setEchoMode(QLineEdit.EchoMode.Password)
        self.passphrase.setAccessibleName(self.tr("Passphrase"))
        self.back_up = QPushButton(self.tr("&Keep a copy…"))
        self.restore = QPushButton(self.tr("&Restore a copy…"))
        note = muted(
            self.tr("Restoring keeps the present key beside the new one, as identity.key.before.")
        )
        stack(self, self._peer, self.passphrase, row(self.back_up, self.restore), note)
        self.passphrase.textChanged.connect(lambda: self._draw())
        self.back_up.clicked.connect(self._choose_target)
        self.restore.clicked.connect(self._choose_source)
        self._draw()

    def show_view(self, view: SettingsView) -> None:
        """Draw `view`."""
        self._busy = view.changing
        self._peer.setText(view.peer)
        self._peer.setVisible(bool(view.peer))
        self._draw()

    def _draw(self) -> None:
        long_enough = len(self.passphrase.text()) >= SHORTEST_PASSPHRASE
        self.back_up.setEnabled(long_enough and not self._busy)
        self.restore.setEnabled(bool(self.passphrase.text()) and not self._busy)

    def _choose_target(self) -> None:
        file, _ = QFileDialog.getSaveFileName(
            self, self.tr("Keep a copy of the identity"), "shoal-identity.p12.txt"
        )
        if file:
            self.backup_wanted.emit(self.passphrase.text(), file)
            self.passphrase.clear()

    def _choose_source(self) -> None:
        file, _ = QFileDialog.getOpenFileName(self, self.tr("Restore a copy of the identity"))
        if file:
            self.restore_wanted.emit(self.passphrase.text(), file)
            self.passphrase.clear()
