"""A block of code in a message: its language, a button that copies it, colours."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QFont, QGuiApplication, QTextCursor, QWheelEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.markdown_parts import Part
from app.windows.highlight import Stretch, colourist, paint
from app.windows.looks import Looks
from app.windows.markdown import MONOSPACE

COLOURS_AFTER_MS = 200
"""Growing code gets its colours when it rests, or this often."""
COPIED_MS = 1500
MARGIN_PX = 9
BAR_GAP_PX = 4


class _CodeView(QPlainTextEdit):
    """The code itself, as high as its lines."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("code")
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        font = QFont(self.font())
        font.setFamilies(MONOSPACE)
        font.setStyleHint(QFont.StyleHint.Monospace)
        self.setFont(font)
        self.document().setDocumentMargin(MARGIN_PX)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll sideways here, and up and down in the conversation."""
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            super().wheelEvent(event)
        else:
            event.ignore()

    def fit(self) -> None:
        """Be as high as the lines are, and the bar below them if one is too long."""
        line = self.blockBoundingRect(self.document().firstBlock()).height()
        if self.blockCount() == 1:  # the last line holds the margin below it
            line -= MARGIN_PX
        lines = math.ceil(max(line, self.fontMetrics().lineSpacing()) * self.blockCount())
        longest = max(self.toPlainText().split("\n"), key=len)
        is_wide = self.fontMetrics().horizontalAdvance(longest) + 2 * MARGIN_PX > self.width()
        room = self.horizontalScrollBar().sizeHint().height() + BAR_GAP_PX if is_wide else 0
        height = lines + 2 * MARGIN_PX + room
        if height != self.height():
            self.setFixedHeight(height)
        self.verticalScrollBar().setValue(0)


class CodePart(QFrame):
    """One block of code; it may grow."""

    def __init__(self, part: Part, colours: Looks, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("codeFrame")
        self._colours = colours
        self._part = Part(True, "")
        self._language = QLabel()
        self._language.setObjectName("small")
        self._copy = QToolButton()
        self._copy.setObjectName("small")
        self._offer_copy()
        self._copy.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._copy.clicked.connect(self._on_copy)
        self.view = _CodeView()
        self.view.setAccessibleName(self.tr("Code"))
        head = QHBoxLayout()
        head.setContentsMargins(MARGIN_PX, 4, 6, 0)
        head.addWidget(self._language, 1)
        head.addWidget(self._copy)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self.view)
        self._wish = 0
        colourist().found.connect(self._on_colours)
        self._paint_later = QTimer(self, singleShot=True, interval=COLOURS_AFTER_MS)
        self._paint_later.timeout.connect(self._paint)
        self._copied = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._copied.timeout.connect(self._offer_copy)
        self.show_part(part)

    def show_part(self, part: Part) -> None:
        """Show `part`, of which what is shown now is usually the beginning."""
        if part == self._part:
            return
        old, new = self._part.text.removesuffix("\n"), part.text.removesuffix("\n")
        if new.startswith(old):
            cursor = QTextCursor(self.view.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(new[len(old) :])
        else:
            self.view.setPlainText(new)
        closes = part.is_closed
        self._part = part
        self._language.setText(part.language or self.tr("text"))
        if closes:
            self._paint()
        elif not self._paint_later.isActive():
            self._paint_later.start()

    def fit(self, width: int) -> None:
        """Be `width` pixels wide and as high as needed."""
        self.setFixedWidth(width)
        self.view.setFixedWidth(width)
        self.view.fit()
        height = self._column.sizeHint().height()
        self.setFixedHeight(height)

    def plain_text(self) -> str:
        """What is shown."""
        return self.view.toPlainText()

    def set_colours(self, colours: Looks) -> None:
        """Follow the palette."""
        self._colours = colours
        self._paint()

    def changeEvent(self, event: QEvent) -> None:
        """Keep a font of fixed width when another size is chosen."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self.view.updateGeometry()

    def _paint(self) -> None:
        self._paint_later.stop()
        self._wish = colourist().wish(
            self.view.toPlainText(), self._part.language, dark=self._colours.is_dark
        )

    def _on_colours(self, wish: int, lines: list[list[Stretch]]) -> None:
        if wish == self._wish and lines:
            paint(self.view.document(), lines)

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._part.text)
        self._copy.setText(self.tr("Copied"))
        self._copy.setAccessibleName(self.tr("Copied"))
        self._copied.start()

    def _offer_copy(self) -> None:
        self._copy.setText(self.tr("Copy"))
        self._copy.setAccessibleName(self.tr("Copy the code"))
