"""Where models are kept, and a button for another place."""

from __future__ import annotations

import sys

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QPushButton, QWidget


class FolderChoice(QWidget):
    """A line of the first steps.

    Signals:
        changed: `folder` is another one now.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.folder = ""
        """What the person has chosen; empty: the usual one."""
        self.choose = QPushButton(self.tr("Choose another fol&der…"))
        self._text = QLabel(wordWrap=True)
        self._text.setObjectName("hint")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._text, 1)
        row.addWidget(self.choose)
        self.choose.clicked.connect(self._choose)
        # There the engine and its models are in Linux, on a disk that Windows' folders are not on.
        self.choose.setVisible(sys.platform != "win32")

    def show_text(self, text: str) -> None:
        """Say where they are; empty: that is not known."""
        self._text.setText(text)

    def _choose(self) -> None:
        dialog = QFileDialog(self, self.tr("Choose a folder for models"), self.folder)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._take)
        dialog.open()

    def _take(self, folder: str) -> None:
        self.folder = folder
        self.changed.emit()
