"""The field in which the person writes, with its Send button."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QPushButton, QSizePolicy, QWidget

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
    """Field and button, as one framed control.

    Signals:
        sent: The text that the person wants to send; the field keeps it until `clear`.
        stop_wanted: The answer under way shall end.
    """

    sent = Signal(str)
    stop_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._can_send = False
        self._can_stop = False
        self.edit = MessageEdit()
        self.edit.setAccessibleName(self.tr("Message"))
        self.edit.setAccessibleDescription(self.tr("Enter sends, Shift+Enter starts a new line"))
        self.edit.send_wanted.connect(self._send)
        self.edit.textChanged.connect(self._draw)
        self.edit.focus_changed.connect(self._on_focus)
        self.button = QPushButton()
        self.button.setObjectName("primary")
        self.button.setMinimumWidth(84)
        self.button.clicked.connect(self._on_button)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 7, 8, 7)
        row.setSpacing(8)
        row.addWidget(self.edit, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        self._draw()

    def show_abilities(self, *, can_send: bool, can_stop: bool, placeholder: str) -> None:
        """Say what the button does now."""
        self._can_send = can_send
        self._can_stop = can_stop
        if self.edit.placeholderText() != placeholder:
            self.edit.setPlaceholderText(placeholder)
        self._draw()

    def clear(self) -> None:
        """Empty the field: its text has been taken."""
        self.edit.clear()

    def _draw(self) -> None:
        label = self.tr("Stop") if self._can_stop else self.tr("Send")
        name = self.tr("Stop the answer") if self._can_stop else self.tr("Send the message")
        if self.button.text() != label:
            self.button.setText(label)
            self.button.setAccessibleName(name)
        self.button.setEnabled(self._can_stop or self._may_send())

    def _may_send(self) -> bool:
        return self._can_send and bool(self.edit.toPlainText().strip())

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
