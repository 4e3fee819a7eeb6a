"""The conversation, as one selectable document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt, QTimer, QUrl
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.state import Role, Turn
from app.windows.looks import Looks
from app.windows.markdown import CODE_PADDING_PX, MarkdownTail, body_block_format, is_code
from app.words import ending_note

REDRAW_INTERVAL_MS = 50
COLUMN_WIDTH_PX = 760
"""Longer lines are hard to read; a wider window gets wider margins."""
SIDE_MARGIN_PX = 28
BUBBLE_PADDING_X_PX = 14
BUBBLE_PADDING_Y_PX = 9
BUBBLE_SHARE = 0.82
"""The widest bubble, as a share of the column."""
RADIUS_PX = 12.0
TURN_GAP_PX = 18
IS_BUBBLE = QTextFormat.Property.UserProperty.value + 1
LINK_SCHEMES = ("http", "https", "mailto")


@dataclass(slots=True)
class _Shown:
    """A turn in the document."""

    turn: Turn
    start: int
    tail: MarkdownTail | None


class Transcript(QTextBrowser):
    """Draws turns; the newest one may grow."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setOpenLinks(False)
        self.anchorClicked.connect(self._open_link)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName(self.tr("Conversation"))
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setIndentWidth(26)
        self.document().setDocumentMargin(0)
        self._colours: Looks | None = None
        self._wanted: tuple[Turn, ...] = ()
        self._shown: list[_Shown] = []
        self._redraw = QTimer(self, singleShot=True, interval=REDRAW_INTERVAL_MS)
        self._redraw.timeout.connect(self._draw)

    def set_colours(self, colours: Looks) -> None:
        """Follow the desktop's palette."""
        self._colours = colours
        self._shown.clear()
        self.clear()
        self._draw()

    def show_turns(self, turns: Sequence[Turn]) -> None:
        """Show `turns`; drawn at most every 50 ms, so tokens may come as fast as they like."""
        if tuple(turns) == self._wanted:
            return
        self._wanted = tuple(turns)
        if not self._redraw.isActive():
            self._redraw.start()

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Load nothing: an answer must not make us read files or call servers."""
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw bubbles and code backgrounds, which rich text cannot round, below the text."""
        if self._colours is not None:
            painter = QPainter(self.viewport())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.translate(0, -self.verticalScrollBar().value())
            self._paint_backgrounds(painter, QRectF(event.rect()), self._colours)
            painter.end()
        super().paintEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the column's width, the bubbles at its right edge, and the end in sight."""
        follow = self._is_at_end()
        super().resizeEvent(event)
        self._fit()
        if follow:
            bar = self.verticalScrollBar()
            bar.setValue(bar.maximum())

    def _is_at_end(self) -> bool:
        bar = self.verticalScrollBar()
        return bar.value() >= bar.maximum() - 8

    def _draw(self) -> None:
        bar = self.verticalScrollBar()
        follow = self._is_at_end()  # do not fight a reader who scrolled up
        same = 0
        for shown, turn in zip(self._shown, self._wanted, strict=False):
            if shown.turn.key != turn.key:
                break
            same += 1
        if same < len(self._shown):
            self._remove_from(same)
        for index, turn in enumerate(self._wanted):
            if index >= len(self._shown):
                self._append(turn)
                follow = follow or turn.role is Role.USER
            elif self._shown[index].turn != turn:
                self._update(self._shown[index], turn)
        self._fit()
        if follow:
            bar.setValue(bar.maximum())

    def _remove_from(self, index: int) -> None:
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._shown[index].start)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        del self._shown[index:]
        if index == 0:
            self.clear()

    def _append(self, turn: Turn) -> None:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        start = cursor.position()
        tail = None
        if turn.role is Role.USER:
            self._insert_bubble(cursor, turn.text)
        else:
            tail = MarkdownTail(self.document())
        shown = _Shown(Turn(turn.key, turn.role), start, tail)
        self._shown.append(shown)
        self._update(shown, turn)

    def _update(self, shown: _Shown, turn: Turn) -> None:
        if shown.tail is not None:
            shown.tail.show(turn.text or ("…" if turn.ending is None else ""))
            note = ending_note(turn.ending, self.tr)
            if note and turn.text:
                self._insert_note(note)
        shown.turn = turn

    def _insert_bubble(self, cursor: QTextCursor, text: str) -> None:
        bubble = body_block_format()
        bubble.setProperty(IS_BUBBLE, True)
        bubble.setTopMargin((0 if self.document().isEmpty() else TURN_GAP_PX) + BUBBLE_PADDING_Y_PX)
        bubble.setBottomMargin(TURN_GAP_PX + BUBBLE_PADDING_Y_PX)
        if self.document().isEmpty():
            cursor.setBlockFormat(bubble)
        else:
            cursor.insertBlock(bubble, QTextCharFormat())
        cursor.insertText(text.replace("\n", "\u2028"))  # one block, many lines

    def _insert_note(self, text: str) -> None:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        look = QTextCharFormat()
        look.setFontItalic(True)
        if self._colours is not None:
            look.setForeground(QColor(self._colours.muted))
        cursor.insertBlock(body_block_format(), look)
        cursor.insertText(text, look)

    def _fit(self) -> None:
        """Set the margins that depend on the window's width."""
        room = self.viewport().width()
        side = max(SIDE_MARGIN_PX, (room - COLUMN_WIDTH_PX) // 2)
        root = self.document().rootFrame()
        frame = root.frameFormat()
        if frame.leftMargin() != side:
            frame.setMargin(0)
            frame.setLeftMargin(side)
            frame.setRightMargin(side)
            frame.setTopMargin(14 + BUBBLE_PADDING_Y_PX)
            frame.setBottomMargin(8)
            root.setFrameFormat(frame)
        column = room - 2 * side
        self._for_bubbles(lambda block: self._place_bubble(block, column))

    def _place_bubble(self, block: QTextBlock, column: int) -> None:
        measure = QTextDocument()
        measure.setDefaultFont(self.document().defaultFont())
        measure.setDocumentMargin(0)
        measure.setPlainText(block.text().replace("\u2028", "\n"))
        width = min(measure.idealWidth() + 2, column * BUBBLE_SHARE - 2 * BUBBLE_PADDING_X_PX)
        left = column - width - BUBBLE_PADDING_X_PX
        layout = block.blockFormat()
        if layout.leftMargin() != left:
            layout.setLeftMargin(left)
            layout.setRightMargin(BUBBLE_PADDING_X_PX)
            QTextCursor(block).setBlockFormat(layout)

    def _for_bubbles(self, act: Callable[[QTextBlock], None]) -> None:
        for shown in self._shown:
            if shown.turn.role is Role.USER:
                block = self.document().findBlock(shown.start)
                while block.isValid() and not block.blockFormat().hasProperty(IS_BUBBLE):
                    block = block.next()
                if block.isValid():
                    act(block)

    def _paint_backgrounds(self, painter: QPainter, area: QRectF, colours: Looks) -> None:
        top = area.top() + self.verticalScrollBar().value()
        layout = self.document().documentLayout()
        code: QRectF | None = None
        block = self.document().begin()
        while block.isValid():
            box = layout.blockBoundingRect(block)
            look = block.blockFormat()
            if is_code(look):
                code = box if code is None else code.united(box)
            elif code is not None:
                self._paint_code(painter, code, colours)
                code = None
            if box.top() > top + area.height() + 200:
                break
            if look.hasProperty(IS_BUBBLE) and box.bottom() >= top - 50:
                self._paint_bubble(painter, block, look, colours)
            block = block.next()
        if code is not None:
            self._paint_code(painter, code, colours)

    def _paint_bubble(
        self, painter: QPainter, block: QTextBlock, look: QTextBlockFormat, colours: Looks
    ) -> None:
        text = block.layout().boundingRect().translated(block.layout().position())
        painter.setBrush(QColor(colours.bubble))
        painter.drawRoundedRect(
            text.adjusted(
                -BUBBLE_PADDING_X_PX, -BUBBLE_PADDING_Y_PX, BUBBLE_PADDING_X_PX, BUBBLE_PADDING_Y_PX
            ),
            RADIUS_PX,
            RADIUS_PX,
        )

    def _paint_code(self, painter: QPainter, box: QRectF, colours: Looks) -> None:
        painter.setBrush(QColor(colours.code))
        root = self.document().rootFrame().frameFormat()
        left = root.leftMargin()
        width = self.viewport().width() - left - root.rightMargin()
        padded = QRectF(
            left, box.top() - CODE_PADDING_PX, width, box.height() + 2 * CODE_PADDING_PX
        )
        painter.drawRoundedRect(padded, 8.0, 8.0)

    def _open_link(self, link: QUrl) -> None:
        if link.scheme().lower() in LINK_SCHEMES:
            QDesktopServices.openUrl(link)
