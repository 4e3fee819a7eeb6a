"""A small diagram over time, with a reading line that follows the pointer or the arrow keys."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.plots import Line, Plot, newest
from app.windows.looks import Looks
from app.windows.plot_drawing import curve_area, draw_axes, draw_curve, draw_head, x_of
from app.words import clock_time, short_weekday

PAGE_STEPS = 10


class PlotWidget(QLabel):
    """Draws a `Plot`. Left, Right, Home and End move the reading line; Escape takes it away.

    A label, for a screen reader says nothing of a plain widget.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plot: Plot | None = None
        self._colours: Looks | None = None
        self._read_unix_s: float | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_plot(self, plot: Plot) -> None:
        """Draw `plot`."""
        if plot == self._plot:
            return
        self._plot = plot
        self._tell()
        self.update()

    def set_colours(self, colours: Looks) -> None:
        """Draw in `colours`."""
        self._colours = colours
        self.update()

    @property
    def reading(self) -> str:
        """What stands beside the title: the values under the reading line, or the newest."""
        return " ".join(text for _, text in self._read_parts())

    def _read_parts(self) -> list[tuple[int | None, str]]:
        """The parts of the reading, each with the number of its curve, if it belongs to one."""
        plot, at_unix_s = self._plot, self._read_unix_s
        if plot is None or plot.empty:
            return []
        parts: list[tuple[int | None, str]] = []
        if at_unix_s is not None:
            moment = datetime.fromtimestamp(at_unix_s).astimezone()
            parts.append((None, f"{short_weekday(moment, self.tr)} {clock_time(moment)}"))
        values = [
            (index, line.name, value)
            for index, line in enumerate(plot.lines)
            if (value := _value_at(line, at_unix_s)) is not None
        ]
        if not values:
            nothing = plot.nothing_now if at_unix_s is None else self.tr("nothing measured")
            return [*parts, (None, nothing)]
        is_alone = len(plot.lines) == 1
        return parts + [
            (None if is_alone else index, f"{name} {plot.words(value, self.tr)}".strip())
            for index, name, value in values
        ]

    def minimumSizeHint(self) -> QSize:
        """What leaves room for title, axis and a curve."""
        line = QFontMetricsF(self.font()).height()
        return QSize(round(15 * line), round(7.5 * line))

    def sizeHint(self) -> QSize:
        """A little more than the least."""
        line = QFontMetricsF(self.font()).height()
        return QSize(round(20 * line), round(9 * line))

    # The reading line -----------------------------------------------------------------------

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Read what is under the pointer."""
        plot, area = self._plot, self._area()
        if plot is None or area.width() <= 0:
            return
        share = (event.position().x() - area.left()) / area.width()
        span_s = plot.end_unix_s - plot.start_unix_s
        self._read(_nearest(self._moments(), plot.start_unix_s + share * span_s))

    def leaveEvent(self, _event: object) -> None:
        """Show the newest again."""
        self._read(None)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show the newest again."""
        self._read(None)
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the reading line."""
        moments = self._moments()
        if not moments:
            super().keyPressEvent(event)
            return
        read = self._read_unix_s
        at = len(moments) if read is None else bisect_left(moments, read)
        match event.key():
            case Qt.Key.Key_Left:
                at -= 1
            case Qt.Key.Key_Right:
                at += 1
            case Qt.Key.Key_PageUp:
                at -= PAGE_STEPS
            case Qt.Key.Key_PageDown:
                at += PAGE_STEPS
            case Qt.Key.Key_Home:
                at = 0
            case Qt.Key.Key_End:
                at = len(moments) - 1
            case Qt.Key.Key_Escape if read is not None:
                self._read(None)
                return
            case _:
                super().keyPressEvent(event)
                return
        self._read(moments[min(max(at, 0), len(moments) - 1)])

    def _moments(self) -> list[float]:
        """Times of all points that are shown."""
        plot = self._plot
        if plot is None:
            return []
        found = {moment for line in plot.lines for moment, _ in line.points}
        return sorted(at for at in found if plot.start_unix_s <= at <= plot.end_unix_s)

    def _read(self, unix_s: float | None) -> None:
        if unix_s != self._read_unix_s:
            self._read_unix_s = unix_s
            self._tell()
            self.update()

    def _tell(self) -> None:
        """Give screen readers what is drawn."""
        plot = self._plot
        if plot is not None:
            self.setAccessibleName(plot.title)
            self.setAccessibleDescription(plot.empty or self.reading)

    # Drawing --------------------------------------------------------------------------------

    def _area(self) -> QRectF:
        return curve_area(QRectF(self.rect()), self.font(), self._plot)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Title and reading above, the axes, then the curves."""
        plot, colours = self._plot, self._colours
        if plot is None or colours is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.hasFocus():
            painter.setPen(QPen(QColor(colours.accent), 1))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        room = QRectF(6, 2, self.width() - 12, QFontMetricsF(self.font()).height() * 1.3)
        draw_head(painter, room, plot.title, self._read_parts(), colours)
        area = self._area()
        if plot.empty:
            painter.setPen(QColor(colours.muted))
            painter.drawText(
                area.adjusted(-20, 0, 0, 0),
                Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap,
                plot.empty,
            )
        else:
            draw_axes(painter, plot, area, colours)
            painter.setClipRect(area.adjusted(-1, -2, 1, 1))
            for index in range(len(plot.lines)):
                draw_curve(painter, plot, index, area, colours)
            if self._read_unix_s is not None:
                x = x_of(plot, area, self._read_unix_s)
                painter.setPen(QPen(QColor(colours.muted), 1))
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        painter.end()


def _value_at(line: Line, unix_s: float | None) -> float | None:
    """The value at a moment; None: the newest."""
    if unix_s is None:
        return newest(line.points)
    return next((value for at, value in line.points if at == unix_s), None)


def _nearest(moments: list[float], unix_s: float) -> float | None:
    return min(moments, key=lambda at: abs(at - unix_s), default=None)
