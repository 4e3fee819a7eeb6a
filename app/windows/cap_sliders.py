"""Three sliders: how much of memory and line Shoal may take."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QSlider, QWidget

from app.setup_presenters import MEMORY_STOPS, NO_RATE, Caps


class CapSliders(QWidget):
    """Draws `Caps` and tells when they have changed.

    Signals:
        changed: The new `Caps`.
    """

    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        usual = Caps()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(10)
        grid.setColumnStretch(1, 1)
        self.memory, self._memory_words = self._row(
            grid, self.tr("Memor&y"), 1, MEMORY_STOPS, usual.memory
        )
        self.up, self._up_words = self._row(grid, self.tr("&Upload"), 0, NO_RATE, usual.up)
        self.down, self._down_words = self._row(grid, self.tr("&Download"), 0, NO_RATE, usual.down)

    @property
    def caps(self) -> Caps:
        """Where the sliders stand."""
        return Caps(self.memory.value(), self.up.value(), self.down.value())

    def show_words(self, words: tuple[str, str, str]) -> None:
        """Say beside each slider what it stands for."""
        rows = (
            (self.memory, self._memory_words),
            (self.up, self._up_words),
            (self.down, self._down_words),
        )
        for (slider, label), text in zip(rows, words, strict=True):
            label.setText(text)
            slider.setAccessibleDescription(text)

    def _row(
        self, grid: QGridLayout, name: str, least: int, most: int, value: int
    ) -> tuple[QSlider, QLabel]:
        row = grid.rowCount()
        slider = QSlider(Qt.Orientation.Horizontal)
        slider.setRange(least, most)
        slider.setValue(value)
        slider.setPageStep(2)
        slider.setAccessibleName(name.replace("&", ""))
        title, words = QLabel(name), QLabel()
        title.setBuddy(slider)
        words.setObjectName("hint")
        words.setMinimumWidth(words.fontMetrics().horizontalAdvance("up to 512 Mbit/s down__"))
        grid.addWidget(title, row, 0)
        grid.addWidget(slider, row, 1)
        grid.addWidget(words, row, 2)
        slider.valueChanged.connect(lambda: self.changed.emit(self.caps))
        return slider, words
