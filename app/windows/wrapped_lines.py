"""Items of a list with a title and what is to be said of it, as high as both need."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QListWidget, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.windows.looks import Looks

ITEM_PADDING_PX = 10
WRAPS = Qt.TextFlag.TextWordWrap


class WrappedLines(QStyledItemDelegate):
    """Items as high as their text; Qt's own count leaves out the style sheet's padding."""

    def __init__(self, view: QListWidget) -> None:
        super().__init__(view)
        self._view = view
        self.colours: Looks | None = None

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        """Draw the first line as a title, and what follows it more quietly."""
        if self.colours is None:
            return
        whole = QStyleOptionViewItem(option)
        self.initStyleOption(whole, index)
        title, _, detail = str(index.data()).partition("\n")
        whole.text = ""
        self._view.style().drawControl(
            QStyle.ControlElement.CE_ItemViewItem, whole, painter, self._view
        )
        room = QRect(option.rect).adjusted(
            ITEM_PADDING_PX, ITEM_PADDING_PX, -ITEM_PADDING_PX, -ITEM_PADDING_PX
        )
        painter.save()
        painter.setPen(QColor(self.colours.text))
        used = painter.boundingRect(room, WRAPS, title)
        painter.drawText(room, WRAPS, title)
        painter.setPen(QColor(self.colours.muted))
        painter.drawText(room.adjusted(0, used.height(), 0, 0), WRAPS, detail)
        painter.restore()

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        """How much room the text of `index` takes."""
        width = self._view.viewport().width() - 2 * ITEM_PADDING_PX
        room = QRect(0, 0, width - ITEM_PADDING_PX, 10_000)
        text = self._view.fontMetrics().boundingRect(room, WRAPS, str(index.data()))
        return QSize(width, text.height() + 2 * ITEM_PADDING_PX)
