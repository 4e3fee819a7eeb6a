"""A framed line that says why something does not go on, with what can be done about it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.presenters import Action

BUSY = 0
PROGRESS_STEPS = 1000


class Banner(QFrame):
    """Hidden while there is nothing to say.

    Args:
        name: Object name, which chooses the colours.
        actions: Labels for screen readers, one for each button.

    Signals:
        chosen: Index of the button that was pressed.
    """

    chosen = Signal(int)

    def __init__(self, name: str, actions: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._text = QLabel(wordWrap=True)
        self._progress = QProgressBar(textVisible=False)
        self._progress.setAccessibleName(self.tr("Progress"))
        self._buttons = [QPushButton() for _ in range(actions)]
        words = QVBoxLayout()
        words.setSpacing(8)
        words.addWidget(self._text)
        words.addWidget(self._progress)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 10, 10, 10)
        row.setSpacing(10)
        row.addLayout(words, 1)
        for index, button in enumerate(self._buttons):
            button.clicked.connect(lambda _=False, index=index: self.chosen.emit(index))
            row.addWidget(button)
        self.hide()

    def show_text(self, text: str, actions: tuple[Action, ...], progress: float | None) -> None:
        """Show `text`, or nothing if it is empty.

        Args:
            text: A sentence.
            actions: The buttons, in the order of the constructor.
            progress: 0 to 1; below 0: busy without known end; None: no bar.
        """
        self.setVisible(bool(text))
        if self._text.text() != text:
            self._text.setText(text)
            self._text.setAccessibleName(text)
        self._progress.setVisible(progress is not None)
        if progress is not None:
            self._progress.setRange(0, BUSY if progress < 0 else PROGRESS_STEPS)
            self._progress.setValue(round(max(progress, 0) * PROGRESS_STEPS))
        for button, action in zip(self._buttons, actions, strict=True):
            button.setText(action.label)
            button.setAccessibleName(action.label.replace("&", ""))
            button.setVisible(action.visible)
            button.setEnabled(action.enabled)
