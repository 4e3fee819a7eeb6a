"""The one mutable cell of the app."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.messages import Message
from app.state import AppState, apply


class Store(QObject):
    """Holds the present `AppState` and tells when it has changed.

    Signals:
        changed: The new `AppState`. Not sent when a message changed nothing.
    """

    changed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = AppState()

    @property
    def state(self) -> AppState:
        """The present state."""
        return self._state

    def dispatch(self, message: Message) -> None:
        """Apply `message`. Call on the main thread."""
        after = apply(self._state, message)
        if after != self._state:
            self._state = after
            self.changed.emit(after)
