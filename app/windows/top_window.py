"""What all our windows have in common."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QWidget


class TopWindow(QWidget):
    """A window of its own.

    Signals:
        closed: Without a tray this may end Shoal.
    """

    closed = Signal()

    def bring_up(self) -> None:
        """Show the window before all others."""
        self.show()
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.raise_()
        self.activateWindow()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Tell."""
        super().closeEvent(event)
        self.closed.emit()
