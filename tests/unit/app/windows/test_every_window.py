"""What holds for all windows in all states: keyboard, screen readers, contrast."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QColor, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QRadioButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.windows.looks import looks
from tests.support.desktop.gallery import every_window
from tests.support.desktop.palettes import DARK, LIGHT, use_palette

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

WINDOWS = ("chat", "home", "models", "dashboard", "batch", "first", "settings", "setup")
SILENT_ROLES = {QAccessible.Role.NoRole, QAccessible.Role.Client}
"""What a screen reader says nothing of."""
SETTLE_MS = 30
READABLE_CONTRAST = 4.5
"""WCAG 2.2 AA for text."""
MOST_STOPS = 150


@pytest.fixture
def palette(qtbot: QtBot) -> Iterator[None]:
    """The desktop's, put back afterwards."""
    before = QApplication.palette()
    yield
    QApplication.setPalette(before)


def parts(interface: QAccessibleInterface) -> Iterator[QAccessibleInterface]:
    """What a screen reader walks through; the cells of tables are the model's business."""
    yield interface
    if interface.role() in (QAccessible.Role.Table, QAccessible.Role.List):
        return
    for at in range(interface.childCount()):
        child = interface.child(at)
        if child is not None and not child.state().invisible:
            yield from parts(child)


def silent_parts(window: QWidget) -> list[QAccessibleInterface]:
    """Controls of which a screen reader would not say what they are, or how they are called."""
    return [
        part
        for part in parts(QAccessible.queryAccessibleInterface(window))
        if part.state().focusable
        and part.object() is not window
        and (_is_silent(part) or not part.text(QAccessible.Text.Name).strip())
    ]


def steps_back(order: list[QWidget]) -> Iterator[tuple[QWidget, QWidget]]:
    """Neighbours in one part of a window where Tab goes up, or to the left in a row."""
    begins = min(
        range(len(order)), key=lambda at: (where(order[at]).top(), where(order[at]).left())
    )
    for one, other in pairwise(order[begins:] + order[:begins]):
        first, second = where(one), where(other)
        above = second.bottom() < first.top()
        left = second.right() < first.left() and second.top() <= first.bottom()
        if one.parentWidget() is other.parentWidget() and (above or left):
            yield one, other


def where(widget: QWidget) -> QRect:
    return QRect(widget.mapToGlobal(QPoint(0, 0)), widget.size())


def stops(window: QWidget) -> list[QWidget]:
    """Where Tab goes, in order, from the start until it is there again."""
    first = window.focusWidget() or window
    found: list[QWidget] = []
    for _ in range(MOST_STOPS):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        at = QApplication.focusWidget()
        if at is None or (found and at is found[0]):
            break
        if at not in found:  # a text with links takes Tab once for each
            found.append(at)
    return found or [first]


def is_stop(widget: QWidget) -> bool:
    """Whether Tab should come by."""
    takes_tab = bool(widget.focusPolicy().value & Qt.FocusPolicy.TabFocus.value)
    proxied = widget.focusProxy() is not None
    in_group = (
        isinstance(widget, QRadioButton) and not widget.isChecked()
    )  # arrows go on from there
    return (
        takes_tab
        and widget.isVisible()
        and widget.isEnabled()
        and not proxied
        and not in_group
        and not isinstance(widget.parent(), QComboBox)
    )


@pytest.mark.parametrize("kind", WINDOWS)
def test_every_control_says_what_it_is_and_tab_comes_by_in_reading_order(
    kind: str, qtbot: QtBot
) -> None:
    silent: list[str] = []
    missed: list[str] = []
    backwards: list[str] = []
    for name, window in every_window(lambda name: name.startswith(kind)):
        qtbot.waitUntil(window.isActiveWindow)
        QTest.qWait(SETTLE_MS)
        silent += [f"{name}: {part.object()!r}" for part in silent_parts(window)]
        order = stops(window)
        missed += [
            f"{name}: {widget.accessibleName() or widget!r}"
            for widget in window.findChildren(QWidget)
            if is_stop(widget) and widget not in order and widget.window() is window
        ]
        backwards += [
            f"{name}: {one.accessibleName()} before {other.accessibleName()}"
            for one, other in steps_back(order)
        ]
    assert (silent, missed, backwards) == ([], [], [])


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_can_be_read_on_what_is_behind_it(
    colours: dict[QPalette.ColorRole, str], palette: None
) -> None:
    use_palette(colours)
    drawn = looks(QApplication.palette())
    texts = {drawn.text, drawn.muted, drawn.alarm}
    behind = {drawn.page, drawn.side, drawn.code, drawn.warning}
    for text in texts:
        for ground in behind:
            assert contrast(text, ground) >= READABLE_CONTRAST, (text, ground)
    assert contrast(drawn.text, drawn.bubble) >= READABLE_CONTRAST
    assert contrast(drawn.on_accent, drawn.accent) >= READABLE_CONTRAST
    assert contrast(drawn.on_accent, drawn.accent_hover) >= READABLE_CONTRAST


def _is_silent(part: QAccessibleInterface) -> bool:
    """Whether a screen reader says nothing of it; of what scrolls it says the name."""
    widget = part.object()
    speaks_through_another = isinstance(widget, QWidget) and widget.focusProxy() is not None
    scrolls = isinstance(widget, QAbstractScrollArea)
    return part.role() in SILENT_ROLES and not scrolls and not speaks_through_another


def contrast(one: str, other: str) -> float:
    """As WCAG counts it: 1 to 21."""
    light, dark = sorted((_luminance(QColor(one)), _luminance(QColor(other))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: QColor) -> float:
    def linear(share: float) -> float:
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(one) for one in (colour.redF(), colour.greenF(), colour.blueF()))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
