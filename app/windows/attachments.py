"""The files that will go with the next message, each with a button that takes it away."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QWidget

from app.words import size
from engine.localapi.chats import MAX_ATTACHMENTS, Attachment

NAME_PX = 180


class Attachments(QWidget):
    """Hidden while there are none.

    Signals:
        changed: A file was added or taken away.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._files: list[Attachment] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(6)
        self._row.addStretch(1)
        self.hide()

    @property
    def files(self) -> tuple[Attachment, ...]:
        """The files, in the order in which they were added."""
        return tuple(self._files)

    def add(self, file: Attachment) -> bool:
        """Add one, in the place of another of the same name; False when there are too many."""
        left = [known for known in self._files if known.name != file.name]
        if len(left) >= MAX_ATTACHMENTS:
            return False
        self._set([*left, file])
        return True

    def clear(self) -> None:
        """Take all away."""
        self._set([])

    def _set(self, files: list[Attachment]) -> None:
        self._files = files
        while self._row.count() > 1:
            item = self._row.takeAt(0)
            if item is not None and (chip := item.widget()) is not None:
                chip.deleteLater()
        for at, file in enumerate(files):
            self._row.insertWidget(at, self._chip(file))
        self.setVisible(bool(files))
        self.changed.emit()

    def _chip(self, file: Attachment) -> QWidget:
        chip = QFrame()
        chip.setObjectName("chip")
        name = QLabel()
        words = f"{file.name} · {size(len(file.text), self.tr)}"
        name.setText(name.fontMetrics().elidedText(words, Qt.TextElideMode.ElideMiddle, NAME_PX))
        name.setToolTip(words)
        away = QToolButton()
        away.setObjectName("small")
        away.setText("×")
        away.setAccessibleName(self.tr("Do not attach {name}").format(name=file.name))
        away.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        away.clicked.connect(lambda: self._set([f for f in self._files if f is not file]))
        row = QHBoxLayout(chip)
        row.setContentsMargins(8, 2, 2, 2)
        row.setSpacing(2)
        row.addWidget(name)
        row.addWidget(away)
        return chip
