"""`python -m tests.support.windows.icon`: draws `shoal.ico` and `side.bmp` in `installers/windows`."""

from __future__ import annotations

import struct
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter

from app.artwork import pixmap
from app.presenters import Icon

FOLDER = Path(__file__).parents[3] / "installers" / "windows"
SIZES_PX = (16, 24, 32, 48, 64, 256)
SIDE_PX = (164, 314)
"""What the wizard's first and last pages have room for."""


def side() -> QImage:
    """The icon on a quiet ground."""
    width, height = SIDE_PX
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor("#12324a"))
    painter = QPainter(image)
    painter.drawPixmap((width - 96) // 2, 48, pixmap(Icon.IDLE, 96))
    painter.end()
    return image.convertToFormat(QImage.Format.Format_Indexed8)


def icon_file() -> bytes:
    """An icon of Windows: a directory of sizes, and a PNG picture for each."""
    pictures = []
    for size_px in SIZES_PX:
        data = QByteArray()
        buffer = QBuffer(data)
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        pixmap(Icon.IDLE, size_px).save(buffer, "PNG")
        pictures.append(bytes(data.data()))
    head = struct.pack("<HHH", 0, 1, len(pictures))
    offset = len(head) + 16 * len(pictures)
    for size_px, picture in zip(SIZES_PX, pictures, strict=True):
        side = size_px % 256  # 0 stands for 256
        head += struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(picture), offset)
        offset += len(picture)
    return head + b"".join(pictures)


if __name__ == "__main__":
    application = QGuiApplication([])
    (FOLDER / "shoal.ico").write_bytes(icon_file())
    assert side().save(str(FOLDER / "side.bmp"), "BMP")
