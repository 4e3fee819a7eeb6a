"""The drawings in `app/icons` as Qt icons."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app.presenters import Icon

FOLDER = Path(__file__).parent / "icons"
SIZES_PX = (16, 22, 24, 32, 44, 48, 64, 128)
"""Panels ask for one of these; trays that take pixels get them sharp."""


@cache
def icon(name: Icon) -> QIcon:
    """The icon `name`, drawn at every size that panels ask for."""
    result = QIcon()
    for size_px in SIZES_PX:
        for mode in (QIcon.Mode.Normal, QIcon.Mode.Disabled):  # a state is never greyed out
            result.addPixmap(pixmap(name, size_px), mode)
    return result


@cache
def pixmap(name: Icon, size_px: int) -> QPixmap:
    """The icon `name` at `size_px` physical pixels."""
    renderer = QSvgRenderer(str(FOLDER / f"{name.value}.svg"))
    result = QPixmap(size_px, size_px)
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    renderer.render(painter, QRectF(0, 0, size_px, size_px))
    painter.end()
    return result
