"""Every window in every language, with letters a quarter larger: nothing is cut off, keys are clear."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListWidget,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.locales import LOCALES
from app.messages import EngineStarting, StatusArrived
from app.presenters import overview
from tests.support.app_states import after, status
from tests.support.desktop.chat_scenes import NOW, scenes
from tests.support.desktop.gallery import every_window
from tests.support.desktop.language import speaking, tr

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

SCENES = scenes() | {
    "draining": after(EngineStarting(), StatusArrived(status(state="draining"))),
    "yielding": after(EngineStarting(), StatusArrived(status(state="yielding"))),
}
LETTERS_PT = 10.0
LARGER = 1.25
WINDOWS = ("chat", "home", "models", "dashboard", "batch", "first", "settings")
SETTLE_MS = 30


@pytest.fixture(params=["en", "de", "fr"])
def large_and_translated(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[None]:
    before = QFont(qapp.font())
    font = QFont("DejaVu Sans")
    font.setPointSizeF(LETTERS_PT * LARGER)
    qapp.setFont(font)
    with speaking(request.param):
        yield
    qapp.setFont(before)


def cut_in(window: QWidget) -> list[str]:
    """Texts that have less room than they need and no other way to be read."""
    return [
        f"{type(widget).__name__} {text!r}"
        for widget in window.findChildren(QWidget)
        if widget.isVisible() and (text := _cut_text(widget) or _text_beyond(widget, window))
    ]


def _text_beyond(widget: QWidget, window: QWidget) -> str:
    """The text of a widget that is wider than what shows it and does not scroll sideways."""
    if not isinstance(widget, QLabel | QAbstractButton | QComboBox | QAbstractSpinBox):
        return ""
    inside = widget.parentWidget()
    while inside is not None:
        area = inside.parentWidget()
        scrolls = isinstance(area, QAbstractScrollArea) and inside is area.viewport()
        if scrolls and area.horizontalScrollBarPolicy() != Qt.ScrollBarPolicy.ScrollBarAlwaysOff:
            return ""
        if inside is window or scrolls:
            right = widget.mapTo(inside, QPoint(widget.width(), 0)).x()
            if right > inside.width():
                return f"{widget.accessibleName() or widget!r} beyond the edge"
        if inside is window:
            return ""
        inside = area
    return ""


def _cut_text(widget: QWidget) -> str:
    width, words = widget.width(), widget.fontMetrics()
    if isinstance(widget, QLabel):
        if widget.toolTip() or not widget.text():
            return ""
        if widget.wordWrap():
            return widget.text() if widget.height() < widget.heightForWidth(width) else ""
        return widget.text() if width < widget.minimumSizeHint().width() else ""
    if isinstance(widget, QAbstractButton):
        hint = widget.sizeHint()
        is_cut = width < hint.width() or widget.height() < hint.height()
        return widget.text() if is_cut and not widget.toolTip() else ""
    if isinstance(widget, QComboBox):
        return widget.currentText() if width < widget.minimumSizeHint().width() else ""
    if isinstance(widget, QAbstractSpinBox):
        room = widget.findChild(QLineEdit).width()
        return widget.text() if room < words.horizontalAdvance(widget.text()) else ""
    if isinstance(widget, QLineEdit):
        text = widget.placeholderText() if not widget.text() else ""
        return text if width < words.horizontalAdvance(text) else ""
    if isinstance(widget, QListWidget):
        room = widget.viewport().width()
        items = [widget.item(at) for at in range(widget.count())]
        longest = [one.text() for one in items if widget.sizeHintForColumn(0) > room]
        return "" if widget.wordWrap() or not longest else max(longest, key=len)
    if isinstance(widget, QTabBar):
        return "tabs" if width < widget.sizeHint().width() else ""
    if isinstance(widget, QHeaderView):
        sections = range(widget.count())
        if widget.height() < widget.sizeHint().height() or widget.height() < 1.3 * words.height():
            return "the height of a header"
        cut = [at for at in sections if widget.sectionSize(at) < widget.sectionSizeHint(at)]
        return str([widget.model().headerData(at, widget.orientation()) for at in cut] or "")
    return ""


@pytest.mark.parametrize("kind", WINDOWS)
def test_no_text_is_cut_and_no_key_means_two_things(
    kind: str, large_and_translated: None, qtbot: QtBot
) -> None:
    """In every language, with letters a quarter larger."""
    found = {}
    for name, window in every_window(lambda name: name.startswith(kind)):
        qtbot.wait(SETTLE_MS)
        if wrong := [*cut_in(window), *twice(keys_in(window))]:
            found[name] = wrong
    assert found == {}


def keys_in(window: QWidget) -> list[str]:
    """The letters that, with Alt, go to something in `window` now."""
    texts = []
    for widget in window.findChildren(QWidget):
        if not widget.isVisible():
            continue
        if isinstance(widget, QAbstractButton) or (isinstance(widget, QLabel) and widget.buddy()):
            texts.append(widget.text())
        elif isinstance(widget, QTabBar):
            texts += [widget.tabText(at) for at in range(widget.count())]
    return [key for text in texts for key in keys_of(text)]


def keys_of(text: str) -> list[str]:
    return [key.lower() for key in re.findall(r"&(\w)", text.replace("&&", ""))]


def twice(keys: list[str]) -> list[str]:
    return [f"Alt+{key} twice" for key, count in Counter(keys).items() if count > 1]


@pytest.mark.parametrize("code", LOCALES)
@pytest.mark.parametrize("scene", SCENES)
def test_no_key_of_the_tray_or_the_home_window_means_two_things(
    code: str, scene: str, qapp: QApplication
) -> None:
    with speaking(code):
        view = overview(SCENES[scene], NOW, tr)
    below = [view.start, view.resume, view.chat, view.dashboard, view.batches]
    shown = [one.label for one in (*below, view.settings, view.quit) if one.visible]
    pauses = [choice.label for choice in view.pauses]
    pause = [view.pause.label] if view.pause.visible else []
    for together in ((*shown, *pauses), (*shown, *pause), pauses):
        assert twice([key for label in together for key in keys_of(label)]) == [], together
