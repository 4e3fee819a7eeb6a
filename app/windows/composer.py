"""Where the person writes: field, files, and the button that sends or stops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QTextCursor
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.text_files import NotAttached, read_text_file
from app.windows.attachments import Attachments
from engine.localapi.chats import MAX_ATTACHMENTS

MAX_LINES = 7


class MessageEdit(QPlainTextEdit):
    """A text field that grows with its text.

    Signals:
        send_wanted: Enter was pressed; Shift+Enter starts a new line instead.
        focus_changed: Whether the field has the keyboard now.
    """

    send_wanted = Signal()
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(4)
        self.textChanged.connect(self._fit)
        self._fit()

    def sizeHint(self) -> QSize:
        """As high as the text, up to `MAX_LINES`."""
        # The plain-text layout gives its height in lines, not in pixels.
        lines = min(max(self.document().size().height(), 1.0), float(MAX_LINES))
        margins = 2 * self.document().documentMargin() + 2 * self.frameWidth()
        return QSize(200, round(lines * self.fontMetrics().lineSpacing() + margins))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.send_wanted.emit()
            return
        super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Tell the frame around us."""
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Tell the frame around us."""
        super().focusOutEvent(event)
        self.focus_changed.emit(False)

    def changeEvent(self, event: QEvent) -> None:
        """Another font needs another height."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        height = self.sizeHint().height()
        if height != self.height():
            self.setFixedHeight(height)
        full = self.document().size().height() > MAX_LINES
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if full else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )


class Composer(QFrame):
    """Field, files and buttons, as one framed control.

    Signals:
        sent: The text that the person wants to send; the field keeps it until `clear`.
        stop_wanted: The answer under way shall end.
        edit_cancelled: The message that was being edited shall stay as it is.
        draft_changed: There is something else in it now.
        refused: A file cannot be attached; a sentence.
    """

    sent = Signal(str)
    stop_wanted = Signal()
    edit_cancelled = Signal()
    draft_changed = Signal()
    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._can_send = False
        self._can_stop = False
        self.files = Attachments()
        self._editing = self._build_editing()
        self.edit = MessageEdit()
        self.edit.setAccessibleName(self.tr("Message"))
        self.edit.setAccessibleDescription(self.tr("Enter sends, Shift+Enter starts a new line"))
        self.attach = QToolButton()
        self.attach.setObjectName("tool")
        self.attach.setText("+")
        self.attach.setAccessibleName(self.tr("Attach text files"))
        self.attach.setToolTip(self.tr("Attach text files (Ctrl+O)"))
        self.attach.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.button = QPushButton()
        self.button.setObjectName("primary")
        self.button.setMinimumWidth(84)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.attach, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.edit, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 7, 8, 7)
        column.setSpacing(6)
        for part in (self._editing, self.files):
            column.addWidget(part)
        column.addLayout(row)
        self._connect()
        self._draw()

    def show_abilities(self, *, can_send: bool, can_stop: bool, placeholder: str) -> None:
        """Say what the button does now."""
        self._can_send = can_send
        self._can_stop = can_stop
        if self.edit.placeholderText() != placeholder:
            self.edit.setPlaceholderText(placeholder)
        self._draw()

    def begin_editing(self, text: str) -> None:
        """Take an earlier message to write it anew."""
        self._editing.show()
        self.edit.setPlainText(text)
        self.edit.moveCursor(QTextCursor.MoveOperation.End)
        self.edit.setFocus()

    def end_editing(self) -> None:
        """Be there for new messages again."""
        if not self._editing.isHidden():
            self._editing.hide()
            self.edit.clear()

    @property
    def is_editing(self) -> bool:
        """Whether an earlier message is being written anew."""
        return not self._editing.isHidden()

    def clear(self) -> None:
        """Empty it: what it held has been taken."""
        self.end_editing()
        self.edit.clear()
        self.files.clear()

    def attach_files(self, paths: Sequence[str]) -> None:
        """Attach the files that are texts."""
        for path in paths:
            try:
                file = read_text_file(Path(path), self.tr)
            except NotAttached as problem:
                self.refused.emit(str(problem))
                continue
            if not self.files.add(file):
                self.refused.emit(
                    self.tr("A message takes at most {n} files.").format(n=MAX_ATTACHMENTS)
                )
                return

    def _build_editing(self) -> QWidget:
        bar = QWidget()
        words = QLabel(self.tr("You are writing an earlier message anew; the old one is kept."))
        words.setObjectName("small")
        words.setWordWrap(True)
        cancel = QToolButton()
        cancel.setObjectName("small")
        cancel.setText(self.tr("Cancel"))
        cancel.setAccessibleName(self.tr("Leave the message as it was"))
        cancel.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        cancel.clicked.connect(self.edit_cancelled)
        row = QHBoxLayout(bar)
        row.setContentsMargins(4, 0, 0, 0)
        row.addWidget(words, 1)
        row.addWidget(cancel)
        bar.hide()
        return bar

    def _connect(self) -> None:
        self.edit.send_wanted.connect(self._send)
        self.edit.textChanged.connect(self._draw)
        self.edit.textChanged.connect(self.draft_changed)
        self.edit.focus_changed.connect(self._on_focus)
        self.files.changed.connect(self._draw)
        self.files.changed.connect(self.draft_changed)
        self.attach.clicked.connect(self.choose_files)
        self.button.clicked.connect(self._on_button)

    def choose_files(self) -> None:
        """Let the person choose files."""
        dialog = QFileDialog(self, self.tr("Attach text files"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(self.attach_files)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _draw(self) -> None:
        label = self.tr("Stop") if self._can_stop else self.tr("Send")
        name = self.tr("Stop the answer") if self._can_stop else self.tr("Send the message")
        if self.button.text() != label:
            self.button.setText(label)
            self.button.setAccessibleName(name)
        self.button.setEnabled(self._can_stop or self._may_send())

    def _may_send(self) -> bool:
        has = bool(self.edit.toPlainText().strip() or self.files.files)
        return self._can_send and has

    def _send(self) -> None:
        if self._may_send():
            self.sent.emit(self.edit.toPlainText())

    def _on_button(self) -> None:
        if self._can_stop:
            self.stop_wanted.emit()
        else:
            self._send()
        self.edit.setFocus()

    def _on_focus(self, focused: bool) -> None:
        self.setProperty("focused", focused)
        self.style().unpolish(self)
        self.style().polish(self)
