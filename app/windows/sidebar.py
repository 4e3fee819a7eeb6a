"""The list of conversations, beside the one that is open."""

from __future__ import annotations

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeySequence, QPainter, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QStackedLayout,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.chat_presenters import Row, SidebarView
from app.item_models import ROW_ROLE, ChatListModel
from app.windows.looks import Looks

SEARCH_AFTER_MS = 150
"""A search begins when the typing rests."""
WIDTH_PX = 250
PADDING_PX = 9
DOT_PX = 7


class Sidebar(QWidget):
    """Draws a `SidebarView` and tells what the person wants.

    Signals:
        new_wanted: An empty conversation.
        chosen, delete_wanted: A conversation.
        renamed: A conversation and its title.
        sought: Words to look for.
        more_wanted: The conversations after this one.
        undo_wanted, undo_expired: The deleted one shall come back, or need not.
        exported: A conversation, and `markdown` or `json`.
    """

    new_wanted = Signal()
    chosen = Signal(int)
    delete_wanted = Signal(int)
    renamed = Signal(int, str)
    sought = Signal(str)
    more_wanted = Signal(int)
    undo_wanted = Signal()
    exported = Signal(int, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(180)
        self.new = QPushButton(self.tr("&New chat"))
        self.new.setAccessibleName(self.tr("New chat"))
        self.new.setToolTip(self.tr("Begin another conversation (Ctrl+N)"))
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search chats"))
        self.search.setAccessibleName(self.tr("Search chats"))
        self.search.setToolTip(self.tr("Words in titles and messages (Ctrl+K)"))
        self.search.setClearButtonEnabled(True)
        self.model = ChatListModel(self)
        self.list = self._build_list()
        self._empty = QLabel(wordWrap=True)
        self._empty.setObjectName("hint")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._empty.setContentsMargins(14, 24, 14, 0)
        self._undo = QFrame()
        self._undo.setObjectName("notice")
        self._undo_text = QLabel(wordWrap=True)
        self.undo = QPushButton(self.tr("Undo"))
        self.undo.setAccessibleName(self.tr("Bring the conversation back"))
        self._search_later = QTimer(self, singleShot=True, interval=SEARCH_AFTER_MS)
        self._lay_out()
        self._connect()

    def show_view(self, view: SidebarView) -> None:
        """Draw `view`."""
        self.model.show_view(view)
        self._pages.setCurrentIndex(1 if view.empty else 0)
        self._empty.setText(view.empty)
        self._undo.setVisible(bool(view.undo))
        self._undo_text.setText(view.undo)
        row = self.model.row_of(view.selected)
        if self.list.currentIndex().row() != row:
            selection = self.list.selectionModel()
            blocked = selection.blockSignals(True)
            index = self.model.index(row) if row >= 0 else QModelIndex()
            self.list.setCurrentIndex(index)
            if row < 0:
                selection.clear()
            selection.blockSignals(blocked)
            self.list.viewport().update()

    def set_colours(self, colours: Looks) -> None:
        """Follow the desktop's palette."""
        self._delegate.colours = colours
        self.list.viewport().update()

    def rename(self, chat: int | None) -> None:
        """Let the person write another title."""
        row = self.model.row_of(chat)
        if row >= 0:
            self.list.setFocus()
            self.list.edit(self.model.index(row))

    def _build_list(self) -> QListView:
        view = QListView()
        view.setObjectName("chats")
        view.setAccessibleName(self.tr("Conversations"))
        view.setModel(self.model)
        self._delegate = _RowDelegate(view)
        view.setItemDelegate(self._delegate)
        view.setUniformItemSizes(True)
        view.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)  # F2
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.setFrameShape(QFrame.Shape.NoFrame)
        return view

    def _lay_out(self) -> None:
        undo = QVBoxLayout(self._undo)
        undo.setContentsMargins(10, 8, 10, 8)
        undo.addWidget(self._undo_text)
        undo.addWidget(self.undo, 0, Qt.AlignmentFlag.AlignRight)
        pages = QWidget()
        self._pages = QStackedLayout(pages)
        self._pages.addWidget(self.list)
        self._pages.addWidget(self._empty)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 12, 10, 10)
        column.setSpacing(8)
        for part in (self.new, self.search):
            column.addWidget(part)
        column.addWidget(pages, 1)
        column.addWidget(self._undo)

    def _connect(self) -> None:
        self.new.clicked.connect(self.new_wanted)
        self.search.textChanged.connect(lambda _text: self._search_later.start())
        self._search_later.timeout.connect(lambda: self.sought.emit(self.search.text().strip()))
        self.model.more_wanted.connect(self.more_wanted)
        self.model.renamed.connect(self.renamed)
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.list.customContextMenuRequested.connect(self._open_menu)
        self.undo.clicked.connect(self.undo_wanted)
        menu_key = QShortcut(QKeySequence("Shift+F10"), self.list)
        menu_key.setContext(Qt.ShortcutContext.WidgetShortcut)
        menu_key.activated.connect(
            lambda: self._open_menu(self.list.visualRect(self.list.currentIndex()).center())
        )

    def _on_current(self, index: QModelIndex) -> None:
        row = self.model.row(index)
        if row is not None:
            self.chosen.emit(row.id)

    def _open_menu(self, at: QPoint) -> None:
        row = self.model.row(self.list.indexAt(at))
        if row is None:
            return
        menu = QMenu(self)
        menu.addAction(self.tr("&Rename"), lambda: self.rename(row.id))
        menu.addAction(
            self.tr("Export as &Markdown…"), lambda: self.exported.emit(row.id, "markdown")
        )
        menu.addAction(self.tr("Export as &JSON…"), lambda: self.exported.emit(row.id, "json"))
        menu.addSeparator()
        menu.addAction(self.tr("&Delete"), lambda: self.delete_wanted.emit(row.id))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.list.viewport().mapToGlobal(at))

    def changeEvent(self, event: QEvent) -> None:
        """Another font needs other rows."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self.list.scheduleDelayedItemsLayout()


class _RowDelegate(QStyledItemDelegate):
    """Draws a title over its detail, and a dot while it is being answered."""

    colours: Looks | None = None

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        """Two lines."""
        small = QFontMetrics(_small(option.font))
        height = QFontMetrics(option.font).height() + small.height() + 2 * PADDING_PX
        return QSize(100, height)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        """Draw a row."""
        row: Row | None = index.data(ROW_ROLE)
        if row is None or self.colours is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box: QRect = option.rect.adjusted(1, 1, -1, -1)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        focused = bool(option.state & QStyle.StateFlag.State_HasFocus)
        if selected or hovered:
            painter.setPen(QColor(self.colours.accent) if focused else Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.colours.bubble if selected else self.colours.code))
            painter.drawRoundedRect(box, 7, 7)
        inner = box.adjusted(PADDING_PX, PADDING_PX - 2, -PADDING_PX, 0)
        if row.answering:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.colours.accent))
            painter.drawEllipse(
                inner.right() - DOT_PX, inner.top() + PADDING_PX // 2, DOT_PX, DOT_PX
            )
            inner.setRight(inner.right() - DOT_PX - 6)
        title = QFontMetrics(option.font)
        painter.setFont(option.font)
        painter.setPen(QColor(self.colours.text))
        shown = title.elidedText(row.title, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(inner.left(), inner.top() + title.ascent(), shown)
        small = _small(option.font)
        metrics = QFontMetrics(small)
        painter.setFont(small)
        painter.setPen(QColor(self.colours.muted))
        shown = metrics.elidedText(row.detail, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(inner.left(), inner.top() + title.height() + metrics.ascent(), shown)
        painter.restore()


def _small(font: QFont) -> QFont:
    small = QFont(font)
    small.setPointSizeF(max(font.pointSizeF() * 0.86, 7.0))
    return small
