"""The rows of a batch for Qt's table view: pages come as they are looked at."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
)

from app.batch_messages import PageWanted
from app.batch_presenters import RowsView
from app.batch_state import PAGE_ROWS, RowPage
from engine.localapi.jobs import JobRow, RowState

Index = QModelIndex | QPersistentModelIndex
LINE, NAME, STATE, PROMPT, ANSWER = range(5)
NOTHING = RowsView(None, only_failed=False, count=0, version=(), pages=(), states=())


class RowTableModel(QAbstractTableModel):
    """Holds a `RowsView`; asks for a page when the view draws a row of it that is missing or old.

    Signals:
        wanted: A `PageWanted`.
    """

    wanted = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._view = NOTHING
        self._pages: dict[int, RowPage] = {}
        self._states: dict[RowState, str] = {}
        self._missing: set[int] = set()
        self._asked: dict[int, tuple[object, ...]] = {}
        self._ask_soon = QTimer(self, singleShot=True, interval=0)
        self._ask_soon.timeout.connect(self._ask)
        self._titles = (
            self.tr("Line"), self.tr("Id"), self.tr("State"), self.tr("What is asked"),
            self.tr("Answer"),
        )  # fmt: skip

    def show_view(self, view: RowsView) -> None:
        """Hold `view`; selection and place stay while it is of the same rows."""
        old, self._states = self._view, dict(view.states)
        if view == old:
            return
        before, pages = self._pages, {page.page: page for page in view.pages}
        if (view.job, view.only_failed) != (old.job, old.only_failed) or view.count < old.count:
            self.beginResetModel()
            self._view, self._pages = view, pages
            self._asked.clear()
            self._missing.clear()
            self.endResetModel()
            return
        grows = view.count > old.count
        if grows:
            self.beginInsertRows(QModelIndex(), old.count, view.count - 1)
        self._view, self._pages = view, pages
        if grows:
            self.endInsertRows()
        for number in before.keys() | pages.keys():
            if before.get(number) is not pages.get(number):
                self._asked.pop(number, None)
                self._tell_changed(number * PAGE_ROWS, (number + 1) * PAGE_ROWS)
        if view.version != old.version:
            self._tell_changed(0, view.count)  # what is drawn anew asks for itself

    def row(self, number: int) -> JobRow | None:
        """What stands there, as far as it is known."""
        page = self._pages.get(number // PAGE_ROWS)
        at = number % PAGE_ROWS
        return page.rows[at] if page is not None and at < len(page.rows) else None

    def rowCount(self, parent: Index | None = None) -> int:
        """How many rows there are."""
        return 0 if parent is not None and parent.isValid() else self._view.count

    def columnCount(self, parent: Index | None = None) -> int:
        """How many columns there are."""
        return 0 if parent is not None and parent.isValid() else len(self._titles)

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Titles of the columns."""
        if role == Qt.ItemDataRole.DisplayRole and orientation is Qt.Orientation.Horizontal:
            return self._titles[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text of a cell; … while it comes."""
        if role not in (
            Qt.ItemDataRole.DisplayRole,
            Qt.ItemDataRole.ToolTipRole,
            Qt.ItemDataRole.AccessibleTextRole,
        ):
            return None
        number, column = index.row(), index.column()
        self._look_at(number // PAGE_ROWS)
        row = self.row(number)
        text = self._text(row, column) if row is not None else self._stand_in(number, column)
        if role == Qt.ItemDataRole.DisplayRole:
            return " ".join(text.split())
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{self._titles[column]}: {text}"
        return text or None

    def _text(self, row: JobRow, column: int) -> str:
        if column == LINE:
            return str(row.line)
        if column == NAME:
            return row.custom_id
        if column == STATE:
            return self._states[row.state]
        return row.prompt if column == PROMPT else row.error or row.answer or ""

    def _stand_in(self, number: int, column: int) -> str:
        page = self._pages.get(number // PAGE_ROWS)
        if column != PROMPT:
            return ""
        return "…" if page is None or not page.error else page.error

    def _look_at(self, number: int) -> None:
        page, version = self._pages.get(number), self._view.version
        if page is not None and page.version == version:
            return
        if number not in self._asked:  # at most one request for a page is under way
            self._missing.add(number)
            if not self._ask_soon.isActive():
                self._ask_soon.start()

    def _ask(self) -> None:
        missing, self._missing = sorted(self._missing), set()
        view = self._view
        if view.job is None:
            return
        for number in missing:
            self._asked[number] = view.version
            self.wanted.emit(PageWanted(view.job, view.only_failed, number, view.version))

    def _tell_changed(self, first: int, end: int) -> None:
        last = min(end, self._view.count) - 1
        if last >= first:
            self.dataChanged.emit(self.index(first, 0), self.index(last, ANSWER))
