"""Parts of the settings that are more than values: swarm, API, models on disk, identity."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from app.settings_presenters import SettingsView, snippets
from app.windows.page_parts import fill_column, muted, row_of
from app.windows.swarm_choice import SwarmChoice
from app.words import size
from engine.localapi.settings import KeptModelInfo

SHORTEST_PASSPHRASE = 8
SNIPPET_HEIGHT_PX = 170


class SwarmPart(QWidget):
    """Where the node belongs, and where else it could.

    Signals:
        change_wanted: A `Choice`.
    """

    change_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view: SettingsView | None = None
        self._now = QLabel(wordWrap=True)
        self.copy = QPushButton(self.tr("&Copy the invite"))
        self.choice = SwarmChoice()
        self.change = QPushButton(self.tr("Change &swarm"))
        self._refusal = QLabel(wordWrap=True)
        self._refusal.hide()
        fill_column(
            self, self._now, row_of(self.copy), self.choice, self._refusal, row_of(self.change)
        )
        self.copy.clicked.connect(self._copy)
        self.change.clicked.connect(lambda: self.change_wanted.emit(self.choice.choice))
        self.choice.changed.connect(self._draw)
        self.choice.refused.connect(self._refuse)

    def show_view(self, view: SettingsView) -> None:
        """Draw `view`."""
        self._view = view
        self._now.setText(view.swarm)
        self.copy.setVisible(bool(view.invite))
        self._draw()

    def _draw(self) -> None:
        view, chosen = self._view, self.choice.choice
        leaves = chosen.way.value != "alone" or (view is not None and view.is_in_swarm)
        self._refusal.hide()
        self.change.setEnabled(
            view is not None and not view.changing and chosen.is_complete and leaves
        )

    def _refuse(self, text: str) -> None:
        self._refusal.setText(text)
        self._refusal.show()

    def _copy(self) -> None:
        if self._view is not None:
            QGuiApplication.clipboard().setText(self._view.invite)


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
        self.copy_url = QPushButton(self.tr("Copy &address"))
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
        fill_column(
            self, self.url, row_of(self.copy_url, self.copy_token), about,
            row_of(self.language, self.copy_snippet), self.snippet,
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


class ModelsPart(QWidget):
    """The models on disk.

    Signals:
        delete_wanted: The name of one.
    """

    delete_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._models: tuple[KeptModelInfo, ...] | None = None
        self._title = QLabel(self.tr("On this computer"))
        self._title.setObjectName("title")
        self._folder = muted("")
        self._grid = QGridLayout()
        self._grid.setColumnStretch(0, 1)
        fill_column(self, self._title, self._folder, self._grid)

    def show_view(self, view: SettingsView) -> None:
        """Draw `view`."""
        self._folder.setText(view.folder)
        if view.models == self._models:
            return
        self._models = view.models
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for at, model in enumerate(view.models):
            button = QPushButton(self.tr("Delete"))
            button.setAccessibleName(self.tr("Delete {model}").format(model=model.name))
            button.setEnabled(not model.in_use)
            button.clicked.connect(lambda _=False, at=at: self._on_delete(at))
            words = QLabel(size(model.num_bytes, self.tr))
            words.setObjectName("hint")
            name = QLabel(
                self.tr("{model} (runs now)").format(model=model.name)
                if model.in_use
                else model.name,
                wordWrap=True,
            )
            self._grid.addWidget(name, at, 0)
            self._grid.addWidget(words, at, 1)
            self._grid.addWidget(button, at, 2)

    def _on_delete(self, at: int) -> None:
        """The first click asks, the second deletes: it can be fetched again, but not at once."""
        item = self._grid.itemAtPosition(at, 2)
        button = None if item is None else item.widget()
        assert isinstance(button, QPushButton)
        assert self._models is not None
        if button.objectName() == "primary":
            button.setEnabled(False)
            self.delete_wanted.emit(self._models[at].name)
            return
        button.setObjectName("primary")
        button.setText(self.tr("Really delete"))
        button.style().polish(button)


class IdentityPart(QWidget):
    """A copy of the node's key, under a passphrase.

    Signals:
        backup_wanted: (passphrase, file).
        restore_wanted: (passphrase, file).
    """

    backup_wanted = Signal(str, str)
    restore_wanted = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._busy = False
        self._peer = muted("")
        self._peer.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.passphrase = QLineEdit(
            maxLength=1024, placeholderText=self.tr("Passphrase, at least 8 characters")
        )
        self.passphrase.setEchoMode(QLineEdit.EchoMode.Password)
        self.passphrase.setAccessibleName(self.tr("Passphrase"))
        self.back_up = QPushButton(self.tr("&Keep a copy…"))
        self.restore = QPushButton(self.tr("&Restore a copy…"))
        note = muted(
            self.tr("Restoring keeps the present key beside the new one, as identity.key.before.")
        )
        fill_column(self, self._peer, self.passphrase, row_of(self.back_up, self.restore), note)
        self.passphrase.textChanged.connect(lambda: self._draw())
        self.back_up.clicked.connect(self._choose_target)
        self.restore.clicked.connect(self._choose_source)
        self._draw()

    def show_view(self, view: SettingsView) -> None:
        """Draw `view`."""
        self._busy = view.changing
        self._peer.setText(view.peer)
        self._peer.setVisible(bool(view.peer))
        self._draw()

    def _draw(self) -> None:
        long_enough = len(self.passphrase.text()) >= SHORTEST_PASSPHRASE
        self.back_up.setEnabled(long_enough and not self._busy)
        self.restore.setEnabled(bool(self.passphrase.text()) and not self._busy)

    def _choose_target(self) -> None:
        file, _ = QFileDialog.getSaveFileName(
            self, self.tr("Keep a copy of the identity"), "shoal-identity.p12.txt"
        )
        if file:
            self.backup_wanted.emit(self.passphrase.text(), file)
            self.passphrase.clear()

    def _choose_source(self) -> None:
        file, _ = QFileDialog.getOpenFileName(self, self.tr("Restore a copy of the identity"))
        if file:
            self.restore_wanted.emit(self.passphrase.text(), file)
            self.passphrase.clear()
