"""How the pages of the settings are laid out."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget


def heading(text: str) -> QLabel:
    """The title of a page."""
    label = QLabel(text, wordWrap=True)
    label.setObjectName("welcome")
    return label


def muted(text: str) -> QLabel:
    """What a page is about."""
    label = QLabel(text, wordWrap=True)
    label.setObjectName("hint")
    return label


def fill_column(part: QWidget, *widgets: QWidget | QHBoxLayout | QGridLayout) -> None:
    """Lay `widgets` out below each other in `part`."""
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(12)
    for widget in widgets:
        if isinstance(widget, QWidget):
            column.addWidget(widget)
        else:
            column.addLayout(widget)


def row_of(*widgets: QWidget) -> QHBoxLayout:
    """Beside each other, at the left."""
    row = QHBoxLayout()
    row.setSpacing(8)
    for widget in widgets:
        row.addWidget(widget)
    row.addStretch(1)
    return row
