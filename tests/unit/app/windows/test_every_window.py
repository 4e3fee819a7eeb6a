"""What holds for all windows in all states: keyboard, screen readers, larger letters, colours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QColor, QFont, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QRadioButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.windows.elided import ElidedLabel
from app.windows.looks import looks
from tests.support.desktop.gallery import every_window
from tests.support.desktop.palettes import DARK, LIGHT, use_palette

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

WINDOWS = ("chat", "home", "models", "dashboard", "batch", "first", "settings")
SILENT_ROLES = {QAccessible.Role.NoRole, QAccessible.Role.Client}
"""What a screen reader says nothing of."""
LARGE = 1.25
READABLE_CONTRAST = 4.5
"""WCAG 2.2 AA for text."""
MOST_STOPS = 150


@pytest.fixture
def font(qtbot: QtBot) -> Iterator[QFont]:
    """The desktop's, put back afterwards."""
    before = QApplication.font()
    yield before
    QApplication.setFont(before)


@pytest.fixture
def palette(qtbot: QtBot) -> Iterator[None]:
    """The desktop's, put back afterwards."""
    before = QApplication.palette()
    yield
    QApplication.setPalette(before)


def windows(kind: str) -> Iterator[tuple[str, QWidget]]:
    for name, window in every_window(lambda name: name.startswith(kind)):
        QTest.qWait(30)
        yield name, window


def parts(interface: QAccessibleInterface) -> Iterator[QAccessibleInterface]:
    """What a screen reader walks through; the cells of tables are the model's business."""
    yield interface
    if interface.role() in (QAccessible.Role.Table, QAccessible.Role.List):
        return
    for at in range(interface.childCount()):
        child = interface.child(at)
        if child is not None and not child.state().invisible:
            yield from parts(child)


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
def test_screen_readers_hear_what_every_control_is(kind: str, qtbot: QtBot) -> None:
    silent = [
        f"{name}: {part.object()!r}"
        for name, window in windows(kind)
        for part in parts(QAccessible.queryAccessibleInterface(window))
        if part.state().focusable
        and (_is_silent(part) or not part.text(QAccessible.Text.Name).strip())
        and part.object() is not window
    ]
    assert silent == []


@pytest.mark.parametrize("kind", WINDOWS)
def test_tab_comes_by_every_control(kind: str, qtbot: QtBot) -> None:
    missed: list[str] = []
    for name, window in windows(kind):
        qtbot.waitUntil(window.isActiveWindow)
        seen = stops(window)
        missed += [
            f"{name}: {widget.accessibleName() or widget!r}"
            for widget in window.findChildren(QWidget)
            if is_stop(widget) and widget not in seen and widget.window() is window
        ]
    assert missed == []


@pytest.mark.parametrize("kind", WINDOWS)
def test_tab_goes_from_top_to_bottom_and_from_left_to_right(kind: str, qtbot: QtBot) -> None:
    back: list[str] = []
    for name, window in windows(kind):
        qtbot.waitUntil(window.isActiveWindow)
        order = stops(window)
        begins = min(range(len(order)), key=lambda at: _reading_place(order[at]))
        order = order[begins:] + order[:begins]
        for one, other in pairwise(order):
            if one.parentWidget() is not other.parentWidget():
                continue
            first, second = where(one), where(other)
            if second.bottom() < first.top() or (
                second.right() < first.left() and second.top() <= first.bottom()
            ):
                back.append(f"{name}: {one.accessibleName()} before {other.accessibleName()}")
    assert back == []


@pytest.mark.parametrize("kind", WINDOWS)
def test_no_text_is_cut_with_letters_a_quarter_larger(kind: str, font: QFont) -> None:
    larger = QFont(font)
    larger.setPointSizeF(font.pointSizeF() * LARGE)
    QApplication.setFont(larger)
    cut = [
        f"{name}: {text}"
        for name, window in windows(kind)
        for widget in window.findChildren(QWidget)
        if widget.isVisible() and (text := _cut_text(widget))
    ]
    assert cut == []


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


def _reading_place(widget: QWidget) -> tuple[int, int]:
    return where(widget).top(), where(widget).left()


def _cut_text(widget: QWidget) -> str:
    """The text of a widget that has no room for it; empty when it has."""
    if isinstance(widget, ElidedLabel):
        return ""  # says so with …, and has a tool tip
    if isinstance(widget, QLabel) and widget.text():
        needed = (
            widget.heightForWidth(widget.width())
            if widget.wordWrap()
            else widget.sizeHint().height()
        )
        is_cut = widget.height() < needed or (
            not widget.wordWrap() and widget.width() < widget.minimumSizeHint().width()
        )
        return widget.text() if is_cut else ""
    if isinstance(widget, QAbstractButton) and widget.text():
        return widget.text() if widget.width() < widget.minimumSizeHint().width() else ""
    if isinstance(widget, QComboBox):
        return widget.currentText() if widget.width() < widget.minimumSizeHint().width() else ""
    if isinstance(widget, QLineEdit) and not widget.text() and widget.placeholderText():
        room = widget.width() - 12
        text = widget.placeholderText()
        return text if widget.fontMetrics().horizontalAdvance(text) > room else ""
    return ""
