"""Windows on screens with more pixels; the factor is fixed when a process starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

DRAW = """
import sys
from datetime import UTC, datetime
from PySide6.QtWidgets import QApplication
from app.presenters import overview
from app.state import AppState
from app.windows.home import HomeWindow
qt = QApplication([])
window = HomeWindow(on_gnome=True)
window.show_view(overview(AppState(), datetime.now(UTC), str))
window.bring_up()
qt.processEvents()
window.grab().save(sys.argv[1])
"""


def picture(folder: Path, factor: str) -> QImage:
    """The small window, drawn at `factor`."""
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": factor}
    file = str(folder / f"{factor}.png")
    subprocess.run([sys.executable, "-c", DRAW, file], env=environment, timeout=60, check=True)
    return QImage(file)


def neighbours_that_differ(image: QImage) -> float:
    """What share of the pixels in odd columns differs from the one before."""
    pairs = [(x, y) for y in range(image.height()) for x in range(1, image.width(), 2)]
    return sum(image.pixel(x, y) != image.pixel(x - 1, y) for x, y in pairs) / len(pairs)


@pytest.mark.parametrize("factor", ["1.5", "2"])
def test_windows_are_larger_and_sharp_not_blown_up(tmp_path: Path, factor: str) -> None:
    plain, dense = picture(tmp_path, "1"), picture(tmp_path, factor)
    assert dense.width() == pytest.approx(plain.width() * float(factor), abs=2)
    assert dense.height() == pytest.approx(plain.height() * float(factor), rel=0.06)
    blown_up = plain.scaled(2 * plain.width(), 2 * plain.height())
    assert neighbours_that_differ(blown_up) == 0
    assert neighbours_that_differ(dense) > 0.01
