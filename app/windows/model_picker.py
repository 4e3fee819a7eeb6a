"""The models that Shoal offers: what they are good for, and whether they can run here."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.model_presenters import ModelRow, ModelsView


class ModelPicker(QDialog):
    """Draws a `ModelsView`, in the looks of the window that it belongs to.

    Signals:
        chosen: The source of the model that shall be used.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("window")
        self.setWindowTitle(self.tr("Models"))
        self.resize(560, 560)
        self._view: ModelsView | None = None
        self._note = QLabel(wordWrap=True)
        self._note.setObjectName("hint")
        self._list = QScrollArea()
        self._list.setObjectName("transcript")
        self._list.setWidgetResizable(True)
        self._list.setFrameShape(QScrollArea.Shape.NoFrame)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setAccessibleName(self.tr("Models"))
        close = QPushButton(self.tr("Close"))
        close.setAccessibleName(self.tr("Close"))
        close.clicked.connect(self.reject)
        foot = QHBoxLayout()
        foot.addWidget(self._note, 1)
        foot.addWidget(close)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(16, 16, 16, 14)
        whole.setSpacing(12)
        whole.addWidget(self._list, 1)
        whole.addLayout(foot)

    def show_view(self, view: ModelsView) -> None:
        """Draw `view`."""
        if view == self._view:
            return
        self._view = view
        self._note.setText(view.note)
        page = QWidget()
        page.setObjectName("column")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(10)
        for row in view.rows:
            column.addWidget(self._card(row))
        column.addStretch(1)
        self._list.setWidget(page)

    def _card(self, row: ModelRow) -> QWidget:
        card = QFrame()
        card.setObjectName("chip")
        name = QLabel(row.name)
        name.setObjectName("title")
        name.setToolTip(row.source)
        words = QVBoxLayout()
        words.setSpacing(3)
        words.addWidget(name)
        for text, look in ((row.about, ""), (row.facts, "small"), (row.standing, "small")):
            label = QLabel(text, wordWrap=True)
            label.setObjectName(look)
            words.addWidget(label)
        use = QPushButton(self.tr("In use") if row.is_running else self.tr("Use"))
        use.setAccessibleName(self.tr("Use {name}").format(name=row.name))
        use.setEnabled(row.can_use)
        use.clicked.connect(lambda: self.chosen.emit(row.source))
        line = QHBoxLayout(card)
        line.setContentsMargins(14, 10, 12, 12)
        line.setSpacing(12)
        line.addLayout(words, 1)
        line.addWidget(use, 0, Qt.AlignmentFlag.AlignTop)
        return card
