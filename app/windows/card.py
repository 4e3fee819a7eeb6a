"""The plain card: what this machine would hold."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from app.setup_presenters import Card


class CardFrame(QFrame):
    """Draws a `Card`; hidden while there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self._headline, self._lines = QLabel(wordWrap=True), QLabel(wordWrap=True)
        self._headline.setObjectName("title")
        self._lines.setObjectName("hint")
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.addWidget(self._headline)
        column.addWidget(self._lines)
        self.hide()

    def show_card(self, card: Card | None) -> None:
        """Draw `card`."""
        self.setVisible(card is not None)
        if card is not None:
            self._headline.setText(card.headline)
            self._lines.setText("\n".join(card.lines))
            self.setAccessibleName(card.headline)
