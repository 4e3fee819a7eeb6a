"""The round button over a conversation that leads to its end."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QPushButton, QWidget

ABOVE_EDGE_PX = 10


class ToEndButton(QPushButton):
    """Lies over the lower edge of its parent while the end is out of sight."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("↓", parent)
        self.setObjectName("round")
        self.setAccessibleName(self.tr("Go to the newest message"))
        self.setToolTip(self.tr("Go to the newest message (Ctrl+End)"))
        self.hide()

    def place(self, room: QSize, *, away: bool) -> None:
        """Show it in the middle of the lower edge of `room`, if the end is `away`."""
        self.setVisible(away)
        if away:
            side = self.sizeHint().height()
            self.setFixedSize(side, side)
            self.move((room.width() - side) // 2, room.height() - side - ABOVE_EDGE_PX)
