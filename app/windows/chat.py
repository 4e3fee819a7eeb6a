"""The chat window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.artwork import icon
from app.presenters import Action, ChatView, Icon
from app.settings import Settings
from app.windows.banner import Banner
from app.windows.composer import Composer
from app.windows.looks import Looks, looks, style_sheet
from app.windows.transcript import COLUMN_WIDTH_PX, SIDE_MARGIN_PX, Transcript

ICON_PX = 28
WELCOME_WIDTH_PX = 460


class ChatWindow(QWidget):
    """Draws a `ChatView` and tells what the person wants.

    Signals:
        asked: A message to send.
        stop_wanted: End the answer under way.
        retry_wanted: Ask for the failed answer again.
        clear_wanted: Begin a new conversation.
        resume_wanted: End the pause.
        start_wanted: Start the engine again.
        closed: The window was closed.
    """

    asked = Signal(str)
    stop_wanted = Signal()
    retry_wanted = Signal()
    clear_wanted = Signal()
    resume_wanted = Signal()
    start_wanted = Signal()
    closed = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._colours: Looks | None = None
        self._icon: Icon | None = None
        self.setObjectName("window")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(self.tr("Shoal chat"))
        self.setMinimumSize(380, 360)
        self._build_parts()
        self._lay_out()
        self._connect()
        geometry = settings.geometry("chat")
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(820, 700)
        self._take_colours()

    def show_view(self, view: ChatView) -> None:
        """Draw `view`."""
        if view.icon is not self._icon:
            self._icon = view.icon
            self._state_icon.setPixmap(icon(view.icon).pixmap(ICON_PX, ICON_PX))
            self.setWindowIcon(icon(view.icon))
        _set_text(self._title, view.title)
        _set_text(self._subtitle, view.subtitle)
        _set_text(self._live, view.live_line)
        _set_text(self._who_reads, view.welcome)
        self._new.setEnabled(bool(view.turns))
        self._pages.setCurrentIndex(1 if view.turns else 0)
        self.transcript.show_turns(view.turns)
        self.notice.show_text(view.notice, (view.resume, view.start), view.progress)
        retry = Action(self.tr("Retry"), enabled=view.can_send)
        self.failure.show_text(view.failure, (retry,), None)
        self.composer.show_abilities(
            can_send=view.can_send, can_stop=view.can_stop, placeholder=view.placeholder
        )

    def bring_up(self) -> None:
        """Show the window before all others, ready for typing."""
        self.show()
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.raise_()
        self.activateWindow()
        self.composer.edit.setFocus()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the place; the conversation stays."""
        self._settings.keep_geometry("chat", self.saveGeometry())
        super().closeEvent(event)
        self.closed.emit()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the desktop when it turns dark or light."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.PaletteChange:
            self._take_colours()

    def _build_parts(self) -> None:
        self._state_icon = QLabel()
        self._state_icon.setFixedSize(ICON_PX, ICON_PX)
        self._title = QLabel()
        self._title.setObjectName("title")
        self._subtitle = QLabel()
        self._subtitle.setObjectName("muted")
        self._new = QPushButton(self.tr("&New chat"))
        self._new.setAccessibleName(self.tr("New chat"))
        self._new.setToolTip(self.tr("Forget this conversation and begin another (Ctrl+N)"))
        self.transcript = Transcript()
        self._welcome = self._build_welcome()
        self.failure = Banner("failure", actions=1)
        self.notice = Banner("notice", actions=2)
        self.composer = Composer()
        self._live = QLabel()
        self._live.setObjectName("muted")
        self._live.setAccessibleName(self.tr("Speed and place of the answer"))
        self._keys = QLabel(self.tr("Enter sends · Shift+Enter starts a new line"))
        self._keys.setObjectName("muted")

    def _build_welcome(self) -> QWidget:
        page = QWidget()
        title = QLabel(self.tr("What would you like to know?"))
        title.setObjectName("welcome")
        hint = self._who_reads = QLabel(wordWrap=True)
        hint.setObjectName("hint")
        hint.setMaximumWidth(WELCOME_WIDTH_PX)
        for label in (title, hint):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        centred = QHBoxLayout()
        centred.addStretch(1)
        centred.addWidget(hint, 1000)  # takes its whole width; an alignment would not let it wrap
        centred.addStretch(1)
        column = QVBoxLayout(page)
        column.setContentsMargins(SIDE_MARGIN_PX, 0, SIDE_MARGIN_PX, 0)
        column.setSpacing(10)
        column.addStretch(5)
        column.addWidget(title)
        column.addLayout(centred)
        column.addStretch(6)
        return page

    def _lay_out(self) -> None:
        names = QVBoxLayout()
        names.setSpacing(1)
        names.addWidget(self._title)
        names.addWidget(self._subtitle)
        header = QHBoxLayout()
        header.setContentsMargins(18, 12, 14, 12)
        header.setSpacing(11)
        header.addWidget(self._state_icon)
        header.addLayout(names, 1)
        header.addWidget(self._new)
        line = QFrame()
        line.setObjectName("line")
        pages = QWidget()
        self._pages = QStackedLayout(pages)
        self._pages.addWidget(self._welcome)
        self._pages.addWidget(self.transcript)
        foot = QHBoxLayout()
        foot.setContentsMargins(6, 0, 6, 0)
        foot.addWidget(self._live, 1)
        foot.addWidget(self._keys)
        column = QVBoxLayout()
        column.setSpacing(8)
        for part in (self.failure, self.notice, self.composer):
            column.addWidget(part)
        column.addLayout(foot)
        below = QWidget()
        below.setMaximumWidth(COLUMN_WIDTH_PX + 2 * SIDE_MARGIN_PX)
        below.setLayout(column)
        column.setContentsMargins(SIDE_MARGIN_PX - 10, 6, SIDE_MARGIN_PX - 10, 12)
        centre = QHBoxLayout()
        centre.addStretch(1)
        centre.addWidget(below, 1000)
        centre.addStretch(1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addLayout(header)
        whole.addWidget(line)
        whole.addWidget(pages, 1)
        whole.addLayout(centre)

    def _connect(self) -> None:
        self._new.clicked.connect(self._on_new)
        self.composer.sent.connect(self._on_sent)
        self.composer.stop_wanted.connect(self.stop_wanted)
        self.failure.chosen.connect(lambda _index: self.retry_wanted.emit())
        self.notice.chosen.connect(
            lambda index: (self.resume_wanted, self.start_wanted)[index].emit()
        )
        QShortcut(QKeySequence.StandardKey.New, self, self._on_new)
        QShortcut(QKeySequence.StandardKey.Close, self, self.close)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self.stop_wanted.emit)

    def _on_sent(self, text: str) -> None:
        self.composer.clear()
        self.asked.emit(text)

    def _on_new(self) -> None:
        self.clear_wanted.emit()
        self.composer.edit.setFocus()

    def _take_colours(self) -> None:
        colours = looks(self.palette())
        if colours != self._colours:
            self._colours = colours
            self.setStyleSheet(style_sheet(colours))
            self.transcript.set_colours(colours)


def _set_text(label: QLabel, text: str) -> None:
    if label.text() != text:
        label.setText(text)
