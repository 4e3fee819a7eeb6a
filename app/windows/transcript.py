"""The conversation: cards one below the other, of which only those near the reader exist.

A conversation may have ten thousand messages, and a card takes some milliseconds to build. So a
window of them is kept, moved as the reader scrolls, and built a few at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QScrollArea, QWidget

from app.windows.looks import Looks
from app.windows.message_card import MessageCard
from app.windows.staying import are_same, staying
from app.windows.to_end_button import ToEndButton
from engine.localapi.chats import Message

REDRAW_INTERVAL_MS = 50
COLUMN_WIDTH_PX = 760
"""Longer lines are hard to read; a wider window gets wider margins."""
SIDE_MARGIN_PX = 28
TOP_MARGIN_PX = 18
CARD_GAP_PX = 16
NEAR_PX = 900
"""Cards are built before the reader comes this near."""
STEP = 1
"""Cards that are built at once; several would be felt."""
MOST_CARDS = 48
AT_END_PX = 24


class Transcript(QScrollArea):
    """Draws messages; the newest one may grow.

    Signals:
        older_wanted: The reader comes near the first message that is known.
        copy_wanted, edit_wanted, again_wanted, continue_wanted: With the `Message`.
        branch_wanted: The id of a message whose branch shall be shown.
    """

    older_wanted = Signal()
    edit_wanted = Signal(object)
    again_wanted = Signal(object)
    continue_wanted = Signal(object)
    branch_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("transcript")
        self.setAccessibleName(self.tr("Conversation"))
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self._column = QWidget()
        self._column.setObjectName("column")
        self.setWidget(self._column)
        self._to_end = ToEndButton(self)
        self._to_end.clicked.connect(self.go_to_end)
        self._colours: Looks | None = None
        self._wanted: tuple[Message, ...] = ()
        self._can_change = False
        self._can_continue = False
        self._has_older = False
        self._cards: list[MessageCard] = []
        self._first = 0
        """Index in `_wanted` of the first card's message."""
        self._follows = True
        """Whether the end stays in sight as it grows."""
        self._moving = False
        self._redraw = QTimer(self, singleShot=True, interval=REDRAW_INTERVAL_MS)
        self._redraw.timeout.connect(self._draw)
        self._fill = QTimer(self, singleShot=True, interval=0)
        self._fill.timeout.connect(self._fill_some)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)

    def set_colours(self, colours: Looks) -> None:
        """Follow the desktop's palette."""
        self._colours = colours
        for card in self._cards:
            card.set_colours(colours)

    def show_turns(
        self, turns: Sequence[Message], *, more: bool, can_change: bool, can_continue: bool
    ) -> None:
        """Show a branch; drawn at most every 50 ms, so tokens may come as fast as they like.

        Args:
            turns: The end of the branch.
            more: Whether there are earlier messages, which can be had now.
            can_change: Whether messages can be edited and repeated.
            can_continue: Whether the last answer can go on.
        """
        self._has_older = more
        fresh = tuple(turns)
        dress = (can_change, can_continue)
        if dress == (self._can_change, self._can_continue) and are_same(fresh, self._wanted):
            return
        self._can_change, self._can_continue = can_change, can_continue
        self._take(fresh)
        if not self._redraw.isActive():
            self._redraw.start()

    def go_to_end(self) -> None:
        """Show the newest message, and keep the end in sight."""
        self._follows = True
        if self._first + len(self._cards) < len(self._wanted):
            self._drop(0, len(self._cards))
            self._first = len(self._wanted)
        self._draw()

    def plain_text(self) -> str:
        """What the cards show."""
        return "\n".join(card.plain_text() for card in self._cards)

    def cards(self) -> tuple[MessageCard, ...]:
        """The cards that exist now, in order."""
        return tuple(self._cards)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the column's width, and the end in sight."""
        super().resizeEvent(event)
        self._restack()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Scroll to what the keyboard goes to."""
        if event.type() is QEvent.Type.FocusIn and isinstance(watched, QWidget):
            self._follows = False
            at = watched.mapTo(self._column, QPoint(0, 0)).y()
            top = self.verticalScrollBar().value()
            if not top <= at <= top + self.viewport().height() - watched.fontMetrics().height():
                self.verticalScrollBar().setValue(at - 40)
        return super().eventFilter(watched, event)

    def _take(self, fresh: tuple[Message, ...]) -> None:
        """Let the window of cards lie over the same messages of another list as before."""
        if not self._cards:
            self._wanted, self._first = fresh, len(fresh)
            self._follows = True
            return
        if are_same(fresh[:-1], self._wanted[:-1]) and fresh[-1].id == self._wanted[-1].id:
            self._wanted = fresh  # only the newest has grown, a hundred times a second
            return
        stay = staying([card.message for card in self._cards], fresh)
        self._drop(stay.start + stay.count, len(self._cards))
        self._drop(0, stay.start)
        self._wanted, self._first = fresh, stay.first
        asked = fresh and fresh[-1].ending is None and stay.count < len(fresh) - stay.first
        if not stay.count or asked:
            self._follows = True

    def _draw(self) -> None:
        if self._colours is None:
            return
        last = len(self._wanted) - 1
        for offset, card in enumerate(self._cards):
            index = self._first + offset
            message = self._wanted[index]
            if card.message is not message or self._dress(card) != self._state(index == last):
                self._show(card, index)
        if self._follows or not self._cards:
            # A question and its answer are built at once, so that nothing jumps.
            self._grow_down(2 * STEP)
            if not self._cards and self._wanted:
                self._first = len(self._wanted)
        self._restack()
        self._fill_some()

    def _state(self, is_last: bool) -> tuple[bool, bool, bool]:
        return (self._can_change, self._can_continue, is_last)

    def _dress(self, card: MessageCard) -> object:
        return card.property("state")

    def _show(self, card: MessageCard, index: int) -> None:
        is_last = index == len(self._wanted) - 1
        card.show_message(
            self._wanted[index],
            can_change=self._can_change,
            can_continue=self._can_continue,
            is_last=is_last,
        )
        card.setProperty("state", self._state(is_last))
        card.fit(self._column_width())

    def _fill_some(self) -> None:
        """Build a few cards where the reader could come next; go on with it when there is time."""
        if self._colours is None or not self._wanted:
            self._to_end.hide()
            return
        bar = self.verticalScrollBar()
        grown = False
        if bar.value() < NEAR_PX and self._first > 0:
            self._grow_up(STEP)
            grown = True
        elif bar.maximum() - bar.value() < NEAR_PX and self._first + len(self._cards) < len(
            self._wanted
        ):
            self._grow_down(STEP)
            self._restack()
            grown = True
        self._trim()
        if grown:
            self._fill.start()
        elif self._first == 0 and bar.value() < NEAR_PX and self._has_older:
            self._has_older = False  # until the next view says so
            self.older_wanted.emit()
        self._place_button()

    def _grow_down(self, most: int) -> None:
        end = self._first + len(self._cards)
        for index in range(end, min(end + most, len(self._wanted))):
            self._cards.append(self._build(index))

    def _grow_up(self, most: int) -> None:
        bar = self.verticalScrollBar()
        from_end = self._column.height() - bar.value()
        for index in range(self._first - 1, max(self._first - 1 - most, -1), -1):
            card = self._build(index)
            card.lower()  # screen readers read the cards in this order
            self._cards.insert(0, card)
            self._first = index
        self._restack(from_end=from_end)

    def _build(self, index: int) -> MessageCard:
        assert self._colours is not None
        message = self._wanted[index]
        card = MessageCard(message, self._colours, self._column)
        card.copy_wanted.connect(lambda: QGuiApplication.clipboard().setText(card.message.text))
        card.edit_wanted.connect(lambda: self.edit_wanted.emit(card.message))
        card.again_wanted.connect(lambda: self.again_wanted.emit(card.message))
        card.continue_wanted.connect(lambda: self.continue_wanted.emit(card.message))
        card.branch_wanted.connect(self.branch_wanted)
        card.grown.connect(self._restack)
        for child in card.findChildren(QWidget):
            if child.focusPolicy() is not Qt.FocusPolicy.NoFocus:
                child.installEventFilter(self)
        self._show(card, index)
        card.show()
        return card

    def _drop(self, start: int, end: int) -> None:
        for card in self._cards[start:end]:
            card.hide()
            card.deleteLater()
        del self._cards[start:end]

    def _trim(self) -> None:
        """Forget cards far from the reader."""
        if len(self._cards) <= MOST_CARDS:
            return
        bar, height = self.verticalScrollBar(), self.viewport().height()
        below = self._cards[-1].y() - (bar.value() + height)
        above = bar.value() - (self._cards[0].y() + self._cards[0].height())
        extra = len(self._cards) - MOST_CARDS
        if below > above and below > 2 * NEAR_PX:
            self._drop(len(self._cards) - extra, len(self._cards))
            self._restack()
        elif above > 2 * NEAR_PX:
            from_end = self._column.height() - bar.value()
            self._drop(0, extra)
            self._first += extra
            self._restack(from_end=from_end)

    def _column_width(self) -> int:
        return max(min(self.viewport().width() - 2 * SIDE_MARGIN_PX, COLUMN_WIDTH_PX), 160)

    def _restack(self, *, from_end: int | None = None) -> None:
        """Put the cards one below the other; the reader sees the same, or the end."""
        width, room = self._column_width(), self.viewport().width()
        x = max((room - width) // 2, 0)
        y = TOP_MARGIN_PX
        for card in self._cards:
            if card.width() != width:
                card.fit(width)
            if card.pos() != QPoint(x, y):
                card.move(x, y)
            y += card.height() + CARD_GAP_PX
        bar = self.verticalScrollBar()
        self._moving = True
        if self._column.size().width() != room or self._column.size().height() != y:
            self._column.resize(room, y)
        if self._follows:
            bar.setValue(bar.maximum())
        elif from_end is not None:
            bar.setValue(y - from_end)
        self._moving = False
        self._place_button()

    def _on_scrolled(self) -> None:
        if self._moving:
            return
        bar = self.verticalScrollBar()
        whole = self._first + len(self._cards) == len(self._wanted)
        self._follows = whole and bar.value() >= bar.maximum() - AT_END_PX
        self._fill.start()

    def _place_button(self) -> None:
        bar = self.verticalScrollBar()
        whole = self._first + len(self._cards) >= len(self._wanted)
        away = bool(self._cards) and (not whole or bar.maximum() - bar.value() > 3 * AT_END_PX)
        self._to_end.place(self.viewport().size(), away=away)
