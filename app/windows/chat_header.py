"""The line above a conversation: what it is called, who answers, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.artwork import icon
from app.chat_presenters import ChatView
from app.presenters import Icon
from app.windows.elided import ElidedLabel

ICON_PX = 26
MODEL_PX = 190
MODEL_LEAST_PX = 40
MODEL_SHARE = 0.2


class ChatHeader(QWidget):
    """Draws the head of a `ChatView`.

    Signals:
        sidebar_wanted: Whether the list shall be seen.
        models_wanted: The models that can be used shall be seen.
        settings_wanted: Whether the settings of the chat shall be seen.
        copy_wanted: The conversation shall lie on the clipboard.
        rename_wanted, delete_wanted: What the menu says.
        exported: `markdown` or `json`.
    """

    sidebar_wanted = Signal(bool)
    models_wanted = Signal()
    settings_wanted = Signal(bool)
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
        self._title = ElidedLabel()
        self._title.setObjectName("title")
        self._subtitle = ElidedLabel()
        self._subtitle.setObjectName("muted")
        self._model_name = ""
        self._badge = QLabel()
        self._badge.setObjectName("badge")
        self.model = self._button("", self.tr("Choose the model"))
        self.model.clicked.connect(self.models_wanted)
        self.settings = self._button(self.tr("Settings"), self.tr("Settings of this chat"))
        self.settings.setCheckable(True)
        self.settings.setToolTip(self.tr("System prompt and sampling (Ctrl+,)"))
        self.settings.toggled.connect(self.settings_wanted)
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
        row.addWidget(self.model)
        row.addWidget(self._badge, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.settings)
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
        if self._model_name != view.model:
            self._model_name = view.model
            self.model.setToolTip(self.tr("{model}: choose another").format(model=view.model))
            self.model.setAccessibleName(
                self.tr("Model {model}: choose another").format(model=view.model)
            )
            self._fit()
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the title its share."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Give the model's name the room that is there, and nothing less than they need to others."""
        most = max(min(self.width() * MODEL_SHARE, MODEL_PX), MODEL_LEAST_PX)
        short = self.model.fontMetrics().elidedText(
            self._model_name, Qt.TextElideMode.ElideMiddle, round(most)
        )
        self.model.setText(f"{short} ▾")
        for part in (self.sidebar, self.model, self.settings, self.more, self._badge):
            part.setMinimumWidth(part.sizeHint().width())

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
