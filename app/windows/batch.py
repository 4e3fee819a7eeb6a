"""The window of batches: all of them, and beside them one of them or the form for a new one."""

from __future__ import annotations

from PySide6.QtCore import (
    QSignalBlocker,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QShortcut,
)
from PySide6.QtWidgets import (
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.batch_presenters import BatchView, JobLine
from app.presenters import Action
from app.settings import Settings
from app.windows.banner import Banner
from app.windows.batch_form import BatchForm
from app.windows.batch_job import BatchPage
from app.windows.looks import Looks
from app.windows.top_window import TopWindow
from app.windows.wrapped_lines import WrappedLines

SIDE_PX = 250
JOB_ROLE = Qt.ItemDataRole.UserRole.value


class BatchWindow(TopWindow):
    """Draws a `BatchView`.

    Args:
        settings: Where windows were.

    Signals:
        chosen: Id of the job that shall be shown, or None: the form.
        news_read: The note about a batch that has ended was put away.
        undo_wanted: The last order shall be taken back.
        closed: The window was closed.
    """

    chosen = Signal(object)
    news_read = Signal()
    undo_wanted = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._lines: tuple[JobLine, ...] = ()
        self._news_job: str | None = None
        self.setWindowTitle(self.tr("Shoal batches"))
        self.setAcceptDrops(True)
        self.new = QPushButton(self.tr("&New batch"))
        self.new.setObjectName("primary")
        self.new.setAccessibleName(self.tr("New batch"))
        self.list = QListWidget()
        self.list.setObjectName("pages")
        self.list.setAccessibleName(self.tr("Batches"))
        self.list.setWordWrap(True)
        self._lines_drawn = WrappedLines(self.list)
        self.list.setItemDelegate(self._lines_drawn)
        self.list.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._note = QLabel(wordWrap=True)
        self._note.setObjectName("hint")
        self.news = Banner("notice", 2)
        self.undo = Banner("notice", 1)
        self.refusal = QLabel(wordWrap=True)
        self.refusal.setObjectName("problem")
        self.form = BatchForm()
        self.page = BatchPage()
        self._form_room = QScrollArea(widgetResizable=True)
        self._form_room.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._form_room.setWidget(self.form)
        self.pages = QStackedWidget()
        self.pages.addWidget(self._form_room)
        self.pages.addWidget(self.page)
        self._lay_out()
        self.new.clicked.connect(self.begin_new)
        self.list.currentItemChanged.connect(lambda item, _before: self._on_item(item))
        self.news.chosen.connect(self._on_news)
        self.undo.chosen.connect(lambda _button: self.undo_wanted.emit())
        QShortcut(QKeySequence.StandardKey.New, self, self.begin_new)
        QShortcut(QKeySequence.StandardKey.Open, self, self._open_file)
        self._undo_key = QShortcut(QKeySequence.StandardKey.Undo, self, self.undo_wanted.emit)
        geometry = settings.geometry("batch")
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(1040, 760)
        self.dress()

    def show_view(self, view: BatchView) -> None:
        """Draw `view`."""
        if view.lines != self._lines:
            self._draw_list(view.lines)
        self._choose(view.chosen)
        self._note.setText(view.note)
        self._note.setVisible(bool(view.note))
        self.refusal.setText(view.refusal)
        self.refusal.setVisible(bool(view.refusal))
        self._news_job = view.news_job
        actions = (Action(self.tr("S&how it")), Action(self.tr("Put &away")))
        self.news.show_text(view.news, actions, None)
        undo = Action(self.tr("Undo"), enabled=view.can_undo)
        self.undo.show_text(view.undo, (undo,), None)
        self._undo_key.setEnabled(bool(view.undo) and view.can_undo)
        self.form.show_view(view.form)
        if view.job is not None:
            self.page.show_view(view.job, view.rows)
        else:
            self.page.model.show_view(view.rows)  # forgets what is under way: it comes too late
        focused = self.focusWidget()
        is_left = view.job is None and focused is not None and self.page.isAncestorOf(focused)
        self.pages.setCurrentWidget(self._form_room if view.job is None else self.page)
        if is_left:
            self.list.setFocus()  # a field of the form would take Ctrl+Z for its own text

    def begin_new(self) -> None:
        """Show the form."""
        self.chosen.emit(None)
        self.form.input.setFocus()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take one file of this computer."""
        if _dropped(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Show its first rows."""
        path = _dropped(event)
        if path:
            event.acceptProposedAction()
            self.begin_new()
            self.form.take_file(path)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the place; batches go on."""
        self._settings.keep_geometry("batch", self.saveGeometry())
        super().closeEvent(event)

    def _open_file(self) -> None:
        self.begin_new()
        self.form.choose_input.click()

    def _draw_list(self, lines: tuple[JobLine, ...]) -> None:
        """Texts change often, the batches themselves rarely."""
        same = [line.id for line in lines] == [line.id for line in self._lines]
        self._lines = lines
        with QSignalBlocker(self.list):
            if not same:
                self.list.clear()
                for line in lines:
                    item = QListWidgetItem()
                    item.setData(JOB_ROLE, line.id)
                    self.list.addItem(item)
            for at, line in enumerate(lines):
                text = f"{line.title}\n{line.detail}"
                if self.list.item(at).text() != text:
                    self.list.item(at).setText(text)

    def _choose(self, job: str | None) -> None:
        at = next((at for at, line in enumerate(self._lines) if line.id == job), -1)
        if at != self.list.currentRow():
            with QSignalBlocker(self.list):
                self.list.setCurrentRow(at)

    def _on_item(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.chosen.emit(item.data(JOB_ROLE))

    def _on_news(self, button: int) -> None:
        if button == 0 and self._news_job is not None:
            self.chosen.emit(self._news_job)
        else:
            self.news_read.emit()

    def _lay_out(self) -> None:
        side = QWidget()
        side.setObjectName("sidebar")
        side.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        side.setMinimumWidth(SIDE_PX - 40)
        column = QVBoxLayout(side)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(10)
        column.addWidget(self.new)
        column.addWidget(self._note)
        column.addWidget(self.list, 1)
        main = QWidget()
        main.setObjectName("column")
        right = QVBoxLayout(main)
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        above = QVBoxLayout()
        above.setContentsMargins(18, 8, 18, 0)
        above.setSpacing(8)
        above.addWidget(self.undo)
        above.addWidget(self.news)
        above.addWidget(self.refusal)
        right.addLayout(above)
        right.addWidget(self.pages, 1)
        parts = QSplitter()
        parts.setObjectName("parts")
        parts.setHandleWidth(1)
        parts.setChildrenCollapsible(False)
        parts.addWidget(side)
        parts.addWidget(main)
        parts.setStretchFactor(1, 1)
        parts.setSizes([SIDE_PX, 1040 - SIDE_PX])
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(parts)

    def own_sheet(self, colours: Looks) -> str:
        """What the form and the tables need."""
        return _sheet(colours)

    def take_colours(self, colours: Looks) -> None:
        """For the list."""
        self._lines_drawn.colours = colours


def _dropped(event: QDropEvent) -> str:
    urls = event.mimeData().urls()
    return urls[0].toLocalFile() if len(urls) == 1 and urls[0].isLocalFile() else ""


def _sheet(colours: Looks) -> str:
    """What only this window has."""
    return f"""
    QScrollArea, QWidget#page {{ background: {colours.page}; border: none; }}
    QLabel#jobTitle {{ font-weight: 600; }}
    QLabel#problem {{ color: {colours.alarm}; font-weight: 600; }}
    QPlainTextEdit#field {{ padding: 2px 4px; }}
    QWidget#page QListWidget {{
        background: {colours.warning}; border: 1px solid {colours.warning_border};
        border-radius: 8px; padding: 4px; color: {colours.text};
    }}
    QTableView {{
        background: {colours.page}; border: 1px solid {colours.border}; border-radius: 8px;
        color: {colours.text}; gridline-color: {colours.border};
        alternate-background-color: {colours.code};
        selection-background-color: {colours.accent}; selection-color: {colours.on_accent};
    }}
    QTableView:focus {{ border-color: {colours.accent}; }}
    QTableView::item {{ padding: 0 4px; }}
    QHeaderView, QHeaderView::section {{
        background: transparent; color: {colours.muted}; border: none; padding: 4px;
    }}
    """
