"""The chat window: conversations, the one that is open, and what is asked next."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeySequence,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.chat_presenters import ChatView, SidebarView, as_text
from app.presenters import Action
from app.settings import Settings
from app.windows.banner import Banner
from app.windows.chat_header import ChatHeader
from app.windows.chat_settings import ChatSettingsPanel
from app.windows.composer import Composer
from app.windows.elided import ElidedLabel
from app.windows.looks import Looks
from app.windows.sidebar import Sidebar
from app.windows.top_window import TopWindow
from app.windows.transcript import COLUMN_WIDTH_PX, SIDE_MARGIN_PX, Transcript
from engine.localapi.chats import Attachment, Message, Speaker

WELCOME_WIDTH_PX = 460
NARROW_PX = 700


class ChatWindow(TopWindow):
    """Draws a `ChatView` and a `SidebarView`, and tells what the person wants.

    What concerns the list, a message or the settings is told by `sidebar`, `transcript`, `header`
    and `panel`.

    Signals:
        asked: A message to send: its text, its files, and the message that it is to stand beside
            or None.
        draft_changed: Texts that lie in the composer.
        stop_wanted: End the answer under way.
        retry_wanted: Ask for the failed answer again.
        clear_wanted: Begin a new conversation.
        resume_wanted: End the pause.
        start_wanted: Start the engine again.
        closed: The window was closed.
    """

    asked = Signal(str, object, object)
    draft_changed = Signal(object)
    stop_wanted = Signal()
    retry_wanted = Signal()
    clear_wanted = Signal()
    resume_wanted = Signal()
    start_wanted = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._view: ChatView | None = None
        self._said = 0
        self._edited: Message | None = None
        self.setWindowTitle(self.tr("Shoal chat"))
        self.setMinimumSize(420, 380)
        self.setAcceptDrops(True)
        self._build_parts()
        self._lay_out()
        self._connect()
        geometry = settings.geometry("chat")
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(1080, 740)
        self.dress()

    def show_view(self, view: ChatView, sidebar: SidebarView) -> None:
        """Draw both."""
        if self._view is not None and view.chat != self._view.chat and self._view.chat is not None:
            self._stop_editing()
        self._view = view
        self.sidebar.show_view(sidebar)
        self.header.show_view(view)
        self.panel.show_view(view)
        _set_text(self._live, view.live_line)
        self._live.setAccessibleDescription(view.path)
        self.header.setToolTip(view.path)
        _set_text(self._context, view.context_line)
        look = "alarm" if view.context_is_full else "muted"
        if self._context.objectName() != look:
            self._context.setObjectName(look)
            self._context.style().unpolish(self._context)
            self._context.style().polish(self._context)
        _set_text(self._who_reads, view.welcome)
        empty = not view.turns and not view.opening
        self._pages.setCurrentIndex(0 if empty else 1)
        self.transcript.show_turns(
            view.turns,
            more=view.more,
            can_change=view.can_change,
            can_continue=view.can_continue,
        )
        self.notice.show_text(view.notice, (view.resume, view.start), view.progress)
        retry = Action(self.tr("Retry"), visible=view.can_retry, enabled=view.can_send)
        self.failure.show_text(view.failure, (retry,), None)
        self.composer.show_abilities(
            can_send=view.can_send, can_stop=view.can_stop, placeholder=view.placeholder
        )
        if view.said != self._said:
            self._said = view.said
            self._edited = None
            self.composer.clear()

    def bring_up(self) -> None:
        """Show the window before all others, ready for typing."""
        super().bring_up()
        self.composer.edit.setFocus()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the place."""
        self._settings.keep_geometry("chat", self.saveGeometry())
        self._settings.keep_geometry("chat-parts", self._parts.saveState())
        super().closeEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the list away where it would leave the conversation too little room."""
        super().resizeEvent(event)
        was = event.oldSize().width()
        if was < 0 or (was < NARROW_PX) != (self.width() < NARROW_PX):
            self.header.sidebar.setChecked(self.width() >= NARROW_PX)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped anywhere in the window."""
        if _files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Attach them."""
        self.composer.attach_files(_files(event.mimeData()))

    def _build_parts(self) -> None:
        self.sidebar = Sidebar()
        self.header = ChatHeader()
        self.panel = ChatSettingsPanel()
        self.panel.hide()
        self.transcript = Transcript()
        self._welcome = self._build_welcome()
        self.failure = Banner("failure", actions=1)
        self.notice = Banner("notice", actions=2)
        self.problem = Banner("notice", actions=1)
        self.composer = Composer()
        self._live = ElidedLabel()
        self._live.setObjectName("muted")
        self._context = QLabel()
        self._context.setObjectName("muted")
        self._context.setAccessibleDescription(self.tr("How full the model's context is"))

    def _build_welcome(self) -> QWidget:
        page = QWidget()
        title = QLabel(self.tr("What would you like to know?"))
        title.setObjectName("welcome")
        title.setWordWrap(True)
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
        line = QFrame()
        line.setObjectName("line")
        pages = QWidget()
        self._pages = QStackedLayout(pages)
        self._pages.addWidget(self._welcome)
        self._pages.addWidget(self.transcript)
        foot = QHBoxLayout()
        foot.setContentsMargins(6, 0, 6, 0)
        foot.addWidget(self._live, 1)
        foot.addWidget(self._context)
        column = QVBoxLayout()
        column.setSpacing(8)
        for part in (self.failure, self.notice, self.problem, self.composer):
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
        conversation = QWidget()
        middle = QVBoxLayout(conversation)
        middle.setContentsMargins(0, 0, 0, 0)
        middle.setSpacing(0)
        middle.addWidget(self.header)
        middle.addWidget(line)
        middle.addWidget(pages, 1)
        middle.addLayout(centre)
        self._parts = QSplitter()
        self._parts.setObjectName("parts")
        self._parts.setHandleWidth(1)
        self._parts.setChildrenCollapsible(False)
        self._parts.addWidget(self.sidebar)
        self._parts.addWidget(conversation)
        self._parts.addWidget(self.panel)
        self._parts.setStretchFactor(1, 1)
        self._parts.setSizes([250, 830, 290])
        state = self._settings.geometry("chat-parts")
        if state is not None:
            self._parts.restoreState(state)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._parts)

    def _connect(self) -> None:
        self.sidebar.new_wanted.connect(self._on_new)
        self.header.copy_wanted.connect(self._copy_all)
        self.header.sidebar_wanted.connect(self.sidebar.setVisible)
        self.header.settings_wanted.connect(self.panel.setVisible)
        self.header.rename_wanted.connect(self._rename)
        self.composer.sent.connect(self._on_sent)
        self.composer.stop_wanted.connect(self.stop_wanted)
        self.composer.edit_cancelled.connect(self._stop_editing)
        self.composer.draft_changed.connect(self._tell_draft)
        self.composer.refused.connect(
            lambda text: self.problem.show_text(text, (Action(self.tr("OK")),), None)
        )
        self.problem.chosen.connect(lambda _index: self.problem.hide())
        self.transcript.edit_wanted.connect(self._begin_editing)
        self.failure.chosen.connect(lambda _index: self.retry_wanted.emit())
        self.notice.chosen.connect(
            lambda index: (self.resume_wanted, self.start_wanted)[index].emit()
        )
        for keys, act in (
            (QKeySequence.StandardKey.New, self._on_new),
            (QKeySequence.StandardKey.Open, self.composer.choose_files),
            (Qt.Key.Key_Escape, self._on_escape),
            ("Ctrl+K", self.sidebar.search.setFocus),
            ("Ctrl+B", self.header.sidebar.click),
            ("Ctrl+,", self.header.settings.click),
            ("Ctrl+L", self.composer.edit.setFocus),
            ("Ctrl+Shift+C", self._copy_all),
            ("Ctrl+E", self._edit_last),
            ("Ctrl+R", self._answer_again),
            ("Ctrl+G", self._go_on),
            ("Ctrl+End", self.transcript.go_to_end),
        ):
            QShortcut(QKeySequence(keys), self, act)

    def _on_sent(self, text: str) -> None:
        self.problem.hide()
        self.asked.emit(text, self.composer.files.files, self._edited)

    def _on_new(self) -> None:
        self._stop_editing()
        self.clear_wanted.emit()
        self.composer.edit.setFocus()

    def _on_escape(self) -> None:
        if self.composer.is_editing:
            self._stop_editing()
        else:
            self.stop_wanted.emit()

    def _begin_editing(self, message: Message) -> None:
        self._edited = message
        self.composer.begin_editing(message.text)

    def _edit_last(self) -> None:
        turns = self._view.turns if self._view is not None else ()
        mine = [turn for turn in turns if turn.speaker is Speaker.USER]
        if mine and self._view is not None and self._view.can_change:
            self._begin_editing(mine[-1])

    def _answer_again(self) -> None:
        if self._view is not None and self._view.turns and self._view.can_change:
            self.transcript.again_wanted.emit(self._view.turns[-1])

    def _go_on(self) -> None:
        if self._view is not None and self._view.can_continue:
            self.transcript.continue_wanted.emit(self._view.turns[-1])

    def _stop_editing(self) -> None:
        self._edited = None
        self.composer.end_editing()

    def _tell_draft(self) -> None:
        files: tuple[Attachment, ...] = self.composer.files.files
        texts = (self.composer.edit.toPlainText(), *(file.text for file in files))
        self.draft_changed.emit(tuple(text for text in texts if text))

    def _copy_all(self) -> None:
        if self._view is not None:
            QGuiApplication.clipboard().setText(as_text(self._view.turns, self.tr))

    def _rename(self) -> None:
        if self._view is not None:
            self.header.sidebar.setChecked(True)
            self.sidebar.show()
            self.sidebar.rename(self._view.chat)

    def take_colours(self, colours: Looks) -> None:
        """For code and the list."""
        self.transcript.set_colours(colours)
        self.sidebar.set_colours(colours)


def _set_text(label: QLabel, text: str) -> None:
    if label.text() != text:
        label.setText(text)


def _files(data: QMimeData) -> list[str]:
    return [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
