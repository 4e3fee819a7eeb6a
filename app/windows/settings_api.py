"""The settings' page about other programs that use this engine."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QComboBox, QLineEdit, QPlainTextEdit, QPushButton, QWidget

from app.settings_presenters import SettingsView, snippets
from app.windows.page_layout import muted, row, stack

SNIPPET_HEIGHT_PX = 170


class ApiPart(QWidget):
    """How other programs use this engine.

    Signals:
        token_wanted: Copy the token.
    """

    token_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._token_file = ""
        self._view: SettingsView | None = None
        self.url = QLineEdit(readOnly=True)
        self.url.setAccessibleName(self.tr("Address of the API"))
        self.copy_url = QPushButton(self.tr("Copy a&ddress"))
        self.copy_token = QPushButton(self.tr("Copy t&oken"))
        self.language = QComboBox()
        self.language.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.language.setAccessibleName(self.tr("Example"))
        self.snippet = QPlainTextEdit(readOnly=True, tabChangesFocus=True)
        self.snippet.setObjectName("field")
        self.snippet.setAccessibleName(self.tr("Example"))
        self.snippet.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.snippet.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.snippet.setFixedHeight(SNIPPET_HEIGHT_PX)
        self.copy_snippet = QPushButton(self.tr("Copy &example"))
        about = muted(
            self.tr("The token is the key to this engine: give it to no one, and to no website.")
        )
        stack(
            self, self.url, row(self.copy_url, self.copy_token), about,
            row(self.language, self.copy_snippet), self.snippet,
        )  # fmt: skip
        clipboard = QGuiApplication.clipboard()
        self.copy_url.clicked.connect(lambda: clipboard.setText(self.url.text()))
        self.copy_token.clicked.connect(self.token_wanted)
        self.copy_snippet.clicked.connect(lambda: clipboard.setText(self.snippet.toPlainText()))
        self.language.currentIndexChanged.connect(lambda: self._show_snippet())

    def show_token_file(self, file: Path) -> None:
        """Where the token lies."""
        self._token_file = str(file)

    def show_view(self, view: SettingsView) -> None:
        """Draw `view`."""
        self._view = view
        self.url.setText(view.api_url)
        known = bool(view.api_url)
        for widget in (self.copy_url, self.copy_token, self.copy_snippet):
            widget.setEnabled(known)
        if self.language.count() == 0:
            for name, _ in snippets("", ""):
                self.language.addItem(name)
        self._show_snippet()

    def _show_snippet(self) -> None:
        if self._view is not None and self.language.currentIndex() >= 0:
            made = snippets(self._view.api_url, self._token_file)
            text = made[self.language.currentIndex()][1]
            if text != self.snippet.toPlainText():
                self.snippet.setPlainText(text)
