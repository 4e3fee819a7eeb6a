"""Pictures with as few colours as they need, so that the repository stays small."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage

MOST_COLOURS = 256
SMALLEST = 0
"""Quality of a PNG in Qt's words: the slowest and smallest."""


def save_small(image: QImage, file: Path) -> None:
    """Write `image` with the colours that it has most of; the others become the nearest of them."""
    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    pixels = memoryview(plain.constBits()).cast("I")
    common = [colour for colour, _ in Counter(pixels.tolist()).most_common(MOST_COLOURS)]
    few = plain.convertToFormat(
        QImage.Format.Format_Indexed8, common, Qt.ImageConversionFlag.AvoidDither
    )
    few.setDevicePixelRatio(1)
    few.save(str(file), "PNG", SMALLEST)
