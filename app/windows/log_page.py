"""The dashboard's third page: the newest lines of the engine's log."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.past_presenters import PastView

MARGIN_PX = 16


class LogPage(QWidget):
    """Shows the log of a `PastView`.

    Args:
        folder: Where the log's file is.

    Signals:
        folder_wanted: Open that folder.
    """

    folder_wanted = Signal()

    def __init__(self, folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self.text = QPlainTextEdit(readOnly=True)
        self.text.setObjectName("log")
        self.text.setAccessibleName(self.tr("The engine's log"))
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setTabChangesFocus(True)
        self._note = QLabel(wordWrap=True)
        self._note.setObjectName("hint")
        self.open_folder = QPushButton(self.tr("Open the &folder"))
        self.open_folder.setAccessibleName(self.tr("Open the folder of the log"))
        self.open_folder.setToolTip(str(folder))
        self.open_folder.clicked.connect(self.folder_wanted)
        row = QHBoxLayout()
        row.addWidget(self._note, 1)
        row.addWidget(self.open_folder)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(MARGIN_PX, MARGIN_PX, MARGIN_PX, MARGIN_PX)
        whole.setSpacing(10)
        whole.addLayout(row)
        whole.addWidget(self.text, 1)
        self._about = self.tr(
            "The newest lines, without names, addresses and keys. What you ask is never logged."
        )

    def show_view(self, view: PastView) -> None:
        """Show the log; who reads its end stays there, who reads elsewhere is not moved."""
        self._note.setText(view.log_note or self._about)
        if self.text.toPlainText() == view.log:
            return
        bar = self.text.verticalScrollBar()
        at_end, place = bar.value() >= bar.maximum(), bar.value()
        self.text.setPlainText(view.log)
        bar.setValue(bar.maximum() if at_end else place)
