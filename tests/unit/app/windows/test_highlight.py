from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QPalette
from pytestqt.qtbot import QtBot

from app.windows.highlight import MAX_CHARS, colourist, stretches
from app.windows.looks import looks

READABLE = 4.5
"""Contrast that WCAG asks of text."""
SOURCE = 'class A:\n    # why\n    def f(self):\n        return len("x") + 1\n'


def luminance(colour: str) -> float:
    parts = (value / 255 for value in QColor(colour).getRgb()[:3])
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_readable_on_the_background_of_code(dark: bool) -> None:
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Base, QColor("#1b1c1f" if dark else "#ffffff"))
    palette.setColor(QPalette.ColorRole.Text, QColor("#e8eaed" if dark else "#1f2328"))
    behind = luminance(looks(palette).code)
    used = {one.colour for line in stretches(SOURCE, "python", dark=dark) for one in line}
    assert len(used) >= 5
    for colour in used:
        light, low = sorted((luminance(colour), behind), reverse=True)
        assert (light + 0.05) / (low + 0.05) >= READABLE, colour


def test_stretches_lie_where_their_words_are() -> None:
    first = stretches(SOURCE, "Python", dark=False)[0]
    assert (first[0].start, first[0].length) == (0, 5)
    assert (first[1].start, first[1].length) == (6, 1)


def test_unknown_language_and_endless_code_stay_plain() -> None:
    assert stretches("x", "no such language", dark=False) == []
    assert stretches("x = 1\n" * MAX_CHARS, "python", dark=False) == []


def test_colours_come_from_beside_the_main_thread(qtbot: QtBot) -> None:
    with qtbot.waitSignal(colourist().found) as found:
        number = colourist().wish("x = 1", "python", dark=True)
    assert found.args[0] == number
    assert found.args[1][0]
