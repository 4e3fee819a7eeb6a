from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from app.artwork import FOLDER, pixmap
from app.presenters import Icon

MIN_CONTRAST = 3.0
"""WCAG 2.2, success criterion 1.4.11, for graphics."""


def test_every_state_has_its_drawing_and_no_drawing_is_left_over() -> None:
    assert {file.stem for file in FOLDER.glob("*.svg")} == {icon.value for icon in Icon}


def test_drawings_differ_in_shape_and_not_in_colour_alone(qtbot: QtBot) -> None:
    shapes = {icon: _shape(pixmap(icon, 24).toImage()) for icon in Icon}
    # Serving and ready are both "fine": they may share the fish.
    different = {shape for icon, shape in shapes.items() if icon is not Icon.SERVING}
    assert len(different) == len(Icon) - 1


@pytest.mark.parametrize("panel", ["#ffffff", "#1e1e1e"])
@pytest.mark.parametrize("icon", list(Icon))
def test_drawing_stands_out_from_light_and_dark_panels(
    qtbot: QtBot, icon: Icon, panel: str
) -> None:
    disc = pixmap(icon, 64).toImage().pixelColor(32, 6)
    assert _contrast(disc, QColor(panel)) >= MIN_CONTRAST


def _shape(image: QImage) -> bytes:
    """Where the drawing is white."""
    return bytes(
        image.pixelColor(x, y).lightness() > 200
        for y in range(image.height())
        for x in range(image.width())
    )


def _contrast(one: QColor, other: QColor) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: QColor) -> float:
    channels = (colour.redF(), colour.greenF(), colour.blueF())
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
