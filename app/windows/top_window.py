"""What all our windows have in common."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractSpinBox, QLineEdit, QWidget

from app.windows.looks import Looks, looks, style_sheet

LOOKS_CHANGE = (QEvent.Type.PaletteChange, QEvent.Type.FontChange)
SPIN_MARGIN_PX = 9


class TopWindow(QWidget):
    """A window of its own, in the desktop's colours and size of letters.

    Signals:
        closed: Without a tray this may end Shoal.
    """

    closed = Signal()
    _sheet = ""
    """Empty until the parts are there."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("window")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        QShortcut(QKeySequence.StandardKey.Close, self, self.close)

    def dress(self) -> None:
        """Take the desktop's looks; to be called once when all parts are there."""
        colours = looks(self.palette())
        sheet = style_sheet(colours, self.font()) + self.own_sheet(colours)
        if sheet != self._sheet:  # a new sheet is a change of the palette, too
            self._sheet = sheet
            self.setStyleSheet(sheet)
            for edit in self.findChildren(QLineEdit):
                if isinstance(edit.parent(), QAbstractSpinBox):  # the sheet's padding passes it by
                    edit.setTextMargins(SPIN_MARGIN_PX, 0, 0, 0)
            self.take_colours(colours)

    def own_sheet(self, _colours: Looks) -> str:
        """What only this window has in its style sheet."""
        return ""

    def take_colours(self, colours: Looks) -> None:
        """Hand `colours` to the parts that draw themselves."""

    def bring_up(self) -> None:
        """Show the window before all others."""
        self.show()
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.raise_()
        self.activateWindow()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the desktop when it turns dark or light, or its letters grow."""
        super().changeEvent(event)
        if self._sheet and event.type() in LOOKS_CHANGE:
            self.dress()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Tell."""
        super().closeEvent(event)
        self.closed.emit()
