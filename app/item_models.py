"""Lists for Qt's item views."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from app.chat_presenters import Row, SidebarView

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE = Qt.ItemDataRole.UserRole.value + 1


class ChatListModel(QAbstractListModel):
    """The conversations that are known; the view asks for more when it comes to their end.

    Signals:
        more_wanted: The id of the last conversation that is known.
        renamed: A conversation and the title that the person has given it.
    """

    more_wanted = Signal(int)
    renamed = Signal(int, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[Row, ...] = ()
        self._more = False

    def show_view(self, view: SidebarView) -> None:
        """Hold the rows of `view`; what is the same stays, so that selection and place do too."""
        self._more = view.more
        old, new = self._rows, view.rows
        if [row.id for row in new[: len(old)]] == [row.id for row in old]:
            if len(new) > len(old):
                self.beginInsertRows(QModelIndex(), len(old), len(new) - 1)
                self._rows = new
                self.endInsertRows()
            self._rows = new
            for at, (before, after) in enumerate(zip(old, new, strict=False)):
                if before != after:
                    self.dataChanged.emit(self.index(at), self.index(at))
            return
        self.beginResetModel()
        self._rows = new
        self.endResetModel()

    def row_of(self, chat: int | None) -> int:
        """Where a conversation stands; -1 when it is not in the list."""
        return next((at for at, row in enumerate(self._rows) if row.id == chat), -1)

    def row(self, index: Index) -> Row | None:
        """What stands at `index`."""
        return self._rows[index.row()] if 0 <= index.row() < len(self._rows) else None

    def rowCount(self, parent: Index | None = None) -> int:
        """How many are known."""
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Title for the eye, title and detail for a screen reader."""
        row = self.row(index)
        if row is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{row.title}, {row.detail}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.title
        return row if role == ROW_ROLE else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Each can be chosen and renamed."""
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Tell the new title; the list changes when the engine has taken it."""
        row = self.row(index)
        title = str(value).strip()
        if row is None or role != Qt.ItemDataRole.EditRole or not title or title == row.title:
            return False
        self.renamed.emit(row.id, title)
        return True

    def canFetchMore(self, parent: Index) -> bool:
        """Whether the engine knows more."""
        return self._more and bool(self._rows)

    def fetchMore(self, parent: Index) -> None:
        """Ask for it, once."""
        self._more = False
        self.more_wanted.emit(self._rows[-1].id)
