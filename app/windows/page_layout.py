"""What the pages of a window are put together from."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

PAGE_LEFT_PX = 2
PAGE_RIGHT_PX = 12
"""Keeps a page's parts clear of its scroll bar."""


def heading(text: str) -> QLabel:
    """The title of a page."""
    label = QLabel(text, wordWrap=True)
    label.setObjectName("welcome")
    return label


def muted(text: str) -> QLabel:
    """What a page is about, or a remark below it."""
    label = QLabel(text, wordWrap=True)
    label.setObjectName("hint")
    return label


def stack(part: QWidget, *widgets: QWidget | QLayout) -> None:
    """Put `widgets` one below the other into `part`."""
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(12)
    _fill(column, widgets)


def row(*widgets: QWidget) -> QHBoxLayout:
    """`widgets` beside each other, at the left."""
    line = QHBoxLayout()
    line.setSpacing(8)
    for widget in widgets:
        line.addWidget(widget)
    line.addStretch(1)
    return line


def framed(look: str, label: QLabel) -> QFrame:
    """`label` in a frame of its own colour, `notice` or `failure`."""
    frame = QFrame()
    frame.setObjectName(look)
    column = QVBoxLayout(frame)
    column.setContentsMargins(14, 11, 14, 11)
    column.addWidget(label)
    return frame


def scrolling_page(*parts: QWidget | QLayout) -> QScrollArea:
    """A page of `parts`, which scrolls where the window is too low for it."""
    page = QWidget()
    page.setObjectName("column")
    column = QVBoxLayout(page)
    column.setContentsMargins(PAGE_LEFT_PX, 2, PAGE_RIGHT_PX, 2)
    column.setSpacing(14)
    _fill(column, parts)
    column.addStretch(1)
    area = QScrollArea(widgetResizable=True)
    area.setObjectName("transcript")
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(page)
    return area


def _fill(column: QVBoxLayout, parts: tuple[QWidget | QLayout, ...]) -> None:
    for part in parts:
        if isinstance(part, QWidget):
            column.addWidget(part)
        else:
            column.addLayout(part)
