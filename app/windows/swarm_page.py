"""The dashboard's first page: what this node holds, the pipeline, and its links."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHeaderView,
    QLabel,
    QScrollArea,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.dashboard_presenters import DashboardView, Facts, LinkRow
from app.windows.looks import Looks
from app.windows.pipeline import PipelinePicture

MARGIN_PX = 16
VALUE_LETTERS = 16
"""In a line of a value, at least."""
MAX_ROWS_SHOWN = 8
"""Links that the table shows without scrolling."""


class SwarmPage(QScrollArea):
    """Draws a `DashboardView`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._absent = QLabel(wordWrap=True, alignment=Qt.AlignmentFlag.AlignCenter)
        self._absent.setObjectName("hint")
        self._notices = QLabel(wordWrap=True)
        self._held = FactCard(self.tr("What I hold"))
        self._tokens = FactCard(self.tr("Tokens"))
        self._reach = FactCard(self.tr("Who can reach me"))
        self.picture = PipelinePicture()
        self._caption = QLabel(wordWrap=True)
        self._no_picture = QLabel(wordWrap=True)
        self._no_picture.setObjectName("hint")
        self._picture_card = self._build_picture_card()
        self.links = LinkTable()
        self._no_links = QLabel(wordWrap=True)
        self._no_links.setObjectName("hint")
        self._link_card = card(self.tr("Links"), self.links, self._no_links)
        self._notice_card = card(self.tr("Please note"), self._notices)
        self._parts = (self._held, self._tokens, self._reach, self._picture_card, self._link_card)
        self._numbers = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._lay_out()

    def show_view(self, view: DashboardView) -> None:
        """Draw `view`."""
        self._absent.setText(view.absent)
        self._absent.setVisible(bool(view.absent))
        self._notices.setText("\n".join(view.notices))
        self._notice_card.setVisible(bool(view.notices))
        for part in self._parts:
            part.setVisible(not view.absent)
        self._held.show_facts(view.held)
        self._tokens.show_facts(view.tokens)
        self._reach.show_facts(view.reach)
        self.picture.show_view(view.pipeline)
        self._picture_area.setVisible(view.pipeline is not None)
        self._picture_area.fit()
        self._caption.setText(view.pipeline.caption if view.pipeline else "")
        self._caption.setVisible(bool(self._caption.text()))
        self._no_picture.setText(view.no_pipeline)
        self._no_picture.setVisible(bool(view.no_pipeline))
        self.links.show_rows(view.links)
        self.links.setVisible(bool(view.links))
        self._no_links.setText(view.no_links)
        self._no_links.setVisible(bool(view.no_links))
        self._place_numbers()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A narrower window may have no room for the cards beside each other."""
        super().resizeEvent(event)
        self._place_numbers()

    def _place_numbers(self) -> None:
        """Put the cards of facts beside each other if they fit, else below each other."""
        cards = (self._held, self._tokens, self._reach)
        gaps_px = 2 * MARGIN_PX + (len(cards) - 1) * self._numbers.spacing()
        needed_px = sum(card.minimumSizeHint().width() for card in cards) + gaps_px
        fits = needed_px <= self.viewport().width()
        self._numbers.setDirection(
            QBoxLayout.Direction.LeftToRight if fits else QBoxLayout.Direction.TopToBottom
        )

    def set_colours(self, colours: Looks) -> None:
        """Draw in `colours`."""
        self.picture.set_colours(colours)

    def _build_picture_card(self) -> QFrame:
        self._picture_area = _WideArea(self.picture)
        return card(
            self.tr("The pipeline now"), self._picture_area, self._caption, self._no_picture
        )

    def _lay_out(self) -> None:
        page = QWidget()
        page.setObjectName("page")
        self.setWidget(page)
        self._numbers.setSpacing(12)
        for part, stretch in ((self._held, 5), (self._tokens, 4), (self._reach, 5)):
            self._numbers.addWidget(part, stretch)
        whole = QVBoxLayout(page)
        whole.setContentsMargins(MARGIN_PX, MARGIN_PX, MARGIN_PX, MARGIN_PX)
        whole.setSpacing(12)
        whole.addWidget(self._absent, 1)
        whole.addWidget(self._notice_card)
        whole.addWidget(self._picture_card)
        whole.addLayout(self._numbers)
        whole.addWidget(self._link_card)
        whole.addStretch(1)


class FactCard(QFrame):
    """A framed list of names and values."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._shown: Facts | None = None
        heading = QLabel(title)
        heading.setObjectName("cardTitle")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnMinimumWidth(1, VALUE_LETTERS * self.fontMetrics().averageCharWidth())
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 14, 12)
        column.setSpacing(8)
        column.addWidget(heading)
        column.addLayout(self._grid)
        column.addStretch(1)
        self._labels: list[tuple[QLabel, QLabel]] = []

    def show_facts(self, facts: Facts) -> None:
        """Show `facts`; labels are kept, so that a screen reader stays where it is."""
        if facts == self._shown:
            return
        self._shown = facts
        while len(self._labels) < len(facts):
            name, value = QLabel(), QLabel(wordWrap=True)
            name.setObjectName("fact")
            name.setAlignment(Qt.AlignmentFlag.AlignTop)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            row = len(self._labels)
            self._grid.addWidget(name, row, 0)
            self._grid.addWidget(value, row, 1)
            self._labels.append((name, value))
        for at, (name, value) in enumerate(self._labels):
            told = facts[at] if at < len(facts) else ("", "")
            name.setVisible(at < len(facts))
            value.setVisible(at < len(facts))
            name.setText(told[0])
            value.setText(told[1])
            value.setAccessibleName(": ".join(told))


class LinkTable(QTableWidget):
    """One row for each neighbour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, 5, parent)
        self.setAccessibleName(self.tr("Links to other nodes"))
        self.setHorizontalHeaderLabels(
            [
                self.tr("Node"), self.tr("Way"), self.tr("Round trip"), self.tr("Bandwidth"),
                self.tr("Sent"),
            ]
        )  # fmt: skip
        self.verticalHeader().hide()
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        header.setMinimumHeight(round(1.8 * self.fontMetrics().height()))
        self.verticalHeader().setDefaultSectionSize(round(1.8 * self.fontMetrics().height()))
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._shown: tuple[LinkRow, ...] = ()

    def show_rows(self, rows: tuple[LinkRow, ...]) -> None:
        """Show `rows`, with the selection where it was."""
        if rows == self._shown:
            return
        self._shown = rows
        self.setRowCount(len(rows))
        for at, row in enumerate(rows):
            cells = (row.peer, row.path, row.rtt, row.bandwidth, row.sent)
            for column, text in enumerate(cells):
                item = self.item(at, column)
                if item is None:
                    self.setItem(at, column, QTableWidgetItem(text))
                else:
                    item.setText(text)
        shown = min(len(rows), MAX_ROWS_SHOWN)
        rows_px = sum(self.rowHeight(at) for at in range(shown))
        self.setFixedHeight(self.horizontalHeader().height() + rows_px + 4)


def card(title: str, *parts: QWidget) -> QFrame:
    """A frame with a title and `parts` below each other."""
    frame = QFrame()
    frame.setObjectName("card")
    heading = QLabel(title)
    heading.setObjectName("cardTitle")
    column = QVBoxLayout(frame)
    column.setContentsMargins(14, 10, 14, 12)
    column.setSpacing(8)
    column.addWidget(heading)
    for part in parts:
        column.addWidget(part)
    return frame


class _WideArea(QScrollArea):
    """Scrolls sideways alone: as high as what it holds."""

    def __init__(self, inner: QWidget) -> None:
        super().__init__()
        self._inner = inner
        self.setWidget(inner)
        self.setAccessibleName(inner.accessibleName())
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner.setObjectName("page")

    def fit(self) -> None:
        """Take the height that the picture needs now."""
        needed = self._inner.minimumSizeHint()
        is_wide = needed.width() > self.width()
        bar = self.horizontalScrollBar().sizeHint().height() if is_wide else 0
        self.setFixedHeight(needed.height() + bar)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A narrower window may need the scroll bar."""
        super().resizeEvent(event)
        self.fit()
