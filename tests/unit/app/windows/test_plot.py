from __future__ import annotations

from datetime import UTC, datetime

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.plots import Line, Plot, plot
from app.windows.looks import looks
from app.windows.plot import PlotWidget
from engine.localapi.statistics import Range

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)
END = NOW.timestamp()


def drawn(*lines: Line) -> Plot:
    return plot(
        "Load", lines, span=Range.HOUR, now=NOW, words=lambda value, tr: f"{value:g} %",
        least_top=100, empty="Nothing yet.", tr=str,
    )  # fmt: skip


def even(values: list[float | None], name: str = "") -> Line:
    """Values at equal distances over the whole hour."""
    step_s = 3600 / (len(values) - 1)
    return Line(name, tuple((END - 3600 + at * step_s, one) for at, one in enumerate(values)))


@pytest.fixture
def widget(qtbot: QtBot) -> PlotWidget:
    widget = PlotWidget()
    qtbot.addWidget(widget)
    widget.resize(460, 200)
    widget.set_colours(looks(QApplication.palette()))
    widget.show_plot(drawn(even([10, 20, 30, 40, 50])))
    widget.show()
    return widget


def columns_of(widget: PlotWidget, colour: str) -> set[int]:
    """Where something of this colour is drawn between head and axis, within the focus' frame."""
    image: QImage = widget.grab().toImage()
    wanted = QColor(colour).rgb()
    return {
        x
        for x in range(5, image.width() - 5)
        for y in range(35, image.height() - 25)
        if image.pixelColor(x, y).rgb() == wanted
    }


def test_curve_reaches_over_the_whole_time(widget: PlotWidget) -> None:
    columns = columns_of(widget, looks(QApplication.palette()).accent)
    assert min(columns) < 60
    assert max(columns) > 430


def test_gap_is_left_empty(widget: PlotWidget) -> None:
    widget.show_plot(drawn(even([50, 50, None, None, 50, 50])))
    columns = columns_of(widget, looks(QApplication.palette()).accent)
    gap = max(b - a for a, b in zip(sorted(columns), sorted(columns)[1:], strict=False))
    assert gap > 200


def test_lone_value_between_gaps_is_seen(widget: PlotWidget) -> None:
    widget.show_plot(drawn(even([None, None, 50, None, None])))
    assert columns_of(widget, looks(QApplication.palette()).accent)


def test_newest_value_stands_beside_the_title(widget: PlotWidget) -> None:
    assert widget.reading == "50 %"
    widget.show_plot(drawn(even([1, 2], "up"), even([3, 4], "down")))
    assert widget.reading == "up 2 % down 4 %"
    widget.show_plot(drawn(even([1, None])))
    assert widget.reading == "nothing now"


def test_pointer_reads_the_nearest_value(widget: PlotWidget) -> None:
    # Straight to the plot: a real pointer tells the topmost window, perhaps one that another test left.
    place = QPointF(48, 100)
    none = Qt.MouseButton.NoButton
    move = QMouseEvent(
        QEvent.Type.MouseMove, place, widget.mapToGlobal(place), none, none,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(widget, move)
    assert widget.reading.endswith(" 10 %")


def test_arrow_keys_read_every_value_and_escape_ends_it(widget: PlotWidget, qtbot: QtBot) -> None:
    widget.setFocus()
    for key, value in (
        (Qt.Key.Key_Left, "50 %"),
        (Qt.Key.Key_Left, "40 %"),
        (Qt.Key.Key_Home, "10 %"),
        (Qt.Key.Key_Left, "10 %"),
        (Qt.Key.Key_Right, "20 %"),
        (Qt.Key.Key_End, "50 %"),
    ):
        qtbot.keyClick(widget, key)
        assert widget.reading.endswith(f" {value}")
        assert widget.accessibleDescription() == widget.reading
    qtbot.keyClick(widget, Qt.Key.Key_Escape)
    assert widget.reading == "50 %"


def test_empty_plot_says_why_to_screen_readers_too(widget: PlotWidget) -> None:
    widget.show_plot(drawn(even([None, None])))
    assert widget.accessibleName() == "Load"
    assert widget.accessibleDescription() == "Nothing yet."
    assert widget.reading == ""
