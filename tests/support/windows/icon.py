"""`python -m tests.support.windows.icon`: draws `installers/windows/shoal.ico` from the app's icon."""

from __future__ import annotations

import struct
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QGuiApplication

from app.artwork import pixmap
from app.presenters import Icon

FILE = Path(__file__).parents[3] / "installers" / "windows" / "shoal.ico"
SIZES_PX = (16, 24, 32, 48, 64, 256)


def drawn() -> bytes:
    """The file: a directory of sizes, and a PNG picture for each."""
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
    FILE.write_bytes(drawn())
