"""The line above a conversation: what it is called, who answers, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QMenu,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.artwork import icon
from app.chat_presenters import ChatView
from app.presenters import Icon

ICON_PX = 26


class ChatHeader(QWidget):
    """Draws the head of a `ChatView`.

    Signals:
        sidebar_wanted: Whether the list shall be seen.
        copy_wanted: The conversation shall lie on the clipboard.
        rename_wanted, delete_wanted: What the menu says.
        exported: `markdown` or `json`.
    """

    sidebar_wanted = Signal(bool)
    copy_wanted = Signal()
    rename_wanted = Signal()
    delete_wanted = Signal()
    exported = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon: Icon | None = None
        self.sidebar = self._button("☰", self.tr("Show the list of chats"))
        self.sidebar.setCheckable(True)
        self.sidebar.setChecked(True)
        self.sidebar.setToolTip(self.tr("Show the list of chats (Ctrl+B)"))
        self.sidebar.toggled.connect(self.sidebar_wanted)
        self._state_icon = QLabel()
        self._state_icon.setFixedSize(ICON_PX, ICON_PX)
        self._title = QLabel()
        self._title.setObjectName("title")
        self._subtitle = QLabel()
        self._subtitle.setObjectName("muted")
        for label in (self._title, self._subtitle):
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            label.setMinimumWidth(60)
        self._badge = QLabel()
        self._badge.setObjectName("badge")
        self.more = self._button("⋯", self.tr("More about this chat"))
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setMenu(self._build_menu())
        names = QVBoxLayout()
        names.setSpacing(1)
        names.addWidget(self._title)
        names.addWidget(self._subtitle)
        row = self.row = QHBoxLayout(self)
        row.setContentsMargins(10, 10, 10, 10)
        row.setSpacing(9)
        row.addWidget(self.sidebar)
        row.addWidget(self._state_icon)
        row.addLayout(names, 1)
        row.addWidget(self._badge, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.more)

    def show_view(self, view: ChatView) -> None:
        """Draw the head of `view`."""
        if view.icon is not self._icon:
            self._icon = view.icon
            self._state_icon.setPixmap(icon(view.icon).pixmap(ICON_PX, ICON_PX))
            self.window().setWindowIcon(icon(view.icon))
        for label, text in ((self._title, view.title), (self._subtitle, view.subtitle)):
            if label.text() != text:
                label.setText(text)
                label.setToolTip(text)
        self._badge.setVisible(view.badge is not None)
        if view.badge is not None and self._badge.text() != view.badge.label:
            self._badge.setText(view.badge.label)
            self._badge.setToolTip(view.badge.explanation)
            self._badge.setAccessibleName(view.badge.explanation)
            self._badge.setProperty("privacy", view.badge.privacy.value)
            self._badge.style().unpolish(self._badge)
            self._badge.style().polish(self._badge)
        for action in self._of_a_chat:
            action.setEnabled(view.chat is not None)
        self._copy.setEnabled(bool(view.turns))

    def _build_menu(self) -> QMenu:
        menu = QMenu(self)
        self._copy = menu.addAction(self.tr("&Copy the conversation"), self.copy_wanted.emit)
        self._copy.setShortcut("Ctrl+Shift+C")
        self._copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)  # the window has the key
        rename = menu.addAction(self.tr("&Rename"), self.rename_wanted.emit)
        markdown = menu.addAction(
            self.tr("Export as &Markdown…"), lambda: self.exported.emit("markdown")
        )
        json = menu.addAction(self.tr("Export as &JSON…"), lambda: self.exported.emit("json"))
        menu.addSeparator()
        delete = menu.addAction(self.tr("&Delete"), self.delete_wanted.emit)
        self._of_a_chat = (rename, markdown, json, delete)
        return menu

    def _button(self, text: str, name: str) -> QToolButton:
        button = QToolButton()
        button.setObjectName("tool")
        button.setText(text)
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button
