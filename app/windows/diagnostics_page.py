"""The dashboard's fourth page: what the diagnostics archive would hold, and its saving."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.past_presenters import PastView, sizes_of
from app.words import in_words
from engine.localapi.statistics import DiagnosticsEntry

MARGIN_PX = 16
MAX_SHOWN_CHARS = 200_000
"""More would hold up the window for a tenth of a second."""


class DiagnosticsPage(QWidget):
    """Shows the files of a `PastView`, each as the archive holds it.

    Signals:
        save_wanted: Save the archive.
    """

    save_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._entries: tuple[DiagnosticsEntry, ...] = ()
        self._about = QLabel(
            self.tr(
                "When something is wrong, this archive helps others to find out why. It holds these "
                "files and nothing else: no chats, and without names, addresses, keys and paths of "
                "yours. It stays on this computer until you give it to somebody."
            ),
            wordWrap=True,
        )
        self.save = QPushButton(self.tr("&Save the archive…"))
        self.save.setObjectName("primary")
        self.save.setAccessibleName(self.tr("Save the archive"))
        self.save.clicked.connect(self.save_wanted)
        self._note = QLabel(wordWrap=True)
        self._note.setObjectName("hint")
        self.files = QListWidget()
        self.files.setAccessibleName(self.tr("Files of the archive"))
        self.files.setWordWrap(True)
        self.files.currentRowChanged.connect(self._show_file)
        self.text = QPlainTextEdit(readOnly=True)
        self.text.setObjectName("log")
        self.text.setAccessibleName(self.tr("What the chosen file holds"))
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setTabChangesFocus(True)
        self._lay_out()

    def show_view(self, view: PastView) -> None:
        """Show the files; the chosen one stays chosen."""
        note = view.diagnostics_note or view.archive_note
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self.save.setEnabled(view.can_save)
        if view.entries == self._entries:
            return
        self._entries = view.entries
        row = max(self.files.currentRow(), 0)
        self.files.clear()
        for entry, size in zip(view.entries, sizes_of(view.entries, self.tr), strict=True):
            about = in_words(entry.about_said, entry.about, self.tr)
            self.files.addItem(f"{entry.name}, {size}\n{about}")
        self.files.setCurrentRow(min(row, len(view.entries) - 1))

    def _show_file(self, row: int) -> None:
        text = self._entries[row].text if 0 <= row < len(self._entries) else ""
        if len(text) > MAX_SHOWN_CHARS:
            newest = text[-MAX_SHOWN_CHARS:].partition("\n")[2]
            text = f"{self.tr('The newest lines; the archive holds all of them.')}\n\n{newest}"
        self.text.setPlainText(text)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(16)
        head.addWidget(self._about, 1)
        head.addWidget(self.save, 0, Qt.AlignmentFlag.AlignTop)
        parts = QSplitter()
        parts.setHandleWidth(10)
        parts.setChildrenCollapsible(False)
        parts.addWidget(self.files)
        parts.addWidget(self.text)
        parts.setStretchFactor(0, 1)
        parts.setStretchFactor(1, 2)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(MARGIN_PX, MARGIN_PX, MARGIN_PX, MARGIN_PX)
        whole.setSpacing(10)
        whole.addLayout(head)
        whole.addWidget(self._note)
        whole.addWidget(parts, 1)
