"""The button that pauses: it offers the ways to pause that make sense now."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from app.presenters import Action, PauseChoice


class PauseButton(QPushButton):
    """Opens a menu of the choices; a lone choice is the button itself.

    Signals:
        pause_wanted: Pause, as this `PauseRequest` says.
    """

    pause_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._choices: tuple[PauseChoice, ...] = ()
        self.choices = QMenu(self)
        self.clicked.connect(self._on_clicked)

    def show_choices(self, action: Action, choices: Sequence[PauseChoice]) -> None:
        """Offer `choices`."""
        self.setVisible(action.visible)
        self.setEnabled(action.enabled)
        if tuple(choices) == self._choices:
            return
        self._choices = tuple(choices)
        label = choices[0].label if len(choices) == 1 else action.label
        self.setText(label)
        self.setAccessibleName(label.replace("&", ""))
        self.choices.clear()
        for choice in choices:
            entry = self.choices.addAction(choice.label)
            entry.triggered.connect(
                lambda _=False, request=choice.request: self.pause_wanted.emit(request)
            )
        self.setMenu(self.choices if len(choices) > 1 else None)  # type: ignore[arg-type]

    def _on_clicked(self) -> None:
        if len(self._choices) == 1:
            self.pause_wanted.emit(self._choices[0].request)
