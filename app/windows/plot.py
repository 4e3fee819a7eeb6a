"""A small diagram over time, with a reading line that follows the pointer or the arrow keys."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plots import Line, Plot, newest
from app.windows.looks import Looks
from app.words import clock_time, short_weekday

FILL_ALPHA = 46
LINE_PX = 1.8
SWATCH_PX = 20.0
GAP_PX = 6.0
PAGE_STEPS = 10


class PlotWidget(QWidget):
    """Draws a `Plot`. Left, Right, Home and End move the reading line; Escape takes it away."""

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

    def _small(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.85)
        return font

    def _area(self) -> QRectF:
        """Where the curves are."""
        line = QFontMetricsF(self.font()).height()
        metrics = QFontMetricsF(self._small())
        ticks = () if self._plot is None else self._plot.ticks
        left = max((metrics.horizontalAdvance(text) for _, text in ticks), default=0.0) + 10
        return QRectF(self.rect()).adjusted(left, 1.7 * line, -6, -1.4 * line)

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
        self._draw_head(painter, plot, colours)
        area = self._area()
        if plot.empty:
            painter.setPen(QColor(colours.muted))
            painter.drawText(
                area.adjusted(-20, 0, 0, 0),
                Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap,
                plot.empty,
            )
        else:
            self._draw_axes(painter, plot, colours, area)
            painter.setClipRect(area.adjusted(-1, -2, 1, 1))
            for index, line in enumerate(plot.lines):
                self._draw_line(painter, plot, line, area, index)
            if self._read_unix_s is not None:
                x = _x(plot, area, self._read_unix_s)
                painter.setPen(QPen(QColor(colours.muted), 1))
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        painter.end()

    def _draw_head(self, painter: QPainter, plot: Plot, colours: Looks) -> None:
        bold = QFont(self.font())
        bold.setWeight(QFont.Weight.DemiBold)
        room = QRectF(6, 2, self.width() - 12, QFontMetricsF(self.font()).height() * 1.3)
        painter.setFont(bold)
        painter.setPen(QColor(colours.text))
        centre = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | centre, plot.title)
        used = QFontMetricsF(bold).horizontalAdvance(plot.title) + 12
        painter.setFont(self.font())
        metrics = QFontMetricsF(self.font())
        right = room.right()
        for index, text in reversed(self._read_parts()):
            width = min(metrics.horizontalAdvance(text), right - room.left() - used)
            place = QRectF(right - width, room.top(), width, room.height())
            painter.setPen(QColor(colours.text))
            painter.drawText(
                place, centre, metrics.elidedText(text, Qt.TextElideMode.ElideRight, width + 1)
            )
            right = place.left() - GAP_PX
            if index is not None:
                self._draw_swatch(painter, QPointF(right - SWATCH_PX, room.center().y()), index)
                right -= SWATCH_PX + 2 * GAP_PX

    def _draw_swatch(self, painter: QPainter, left: QPointF, index: int) -> None:
        """A piece of curve `index`, to tell which one a number belongs to."""
        painter.setPen(self._pen(index))
        painter.drawLine(left, left + QPointF(SWATCH_PX, 0))

    def _pen(self, index: int) -> QPen:
        assert self._colours is not None
        ink = self._colours.second if index else self._colours.accent
        style = Qt.PenStyle.DashLine if index else Qt.PenStyle.SolidLine
        return QPen(QColor(ink), LINE_PX, style)

    def _draw_axes(self, painter: QPainter, plot: Plot, colours: Looks, area: QRectF) -> None:
        font = self._small()
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        for value, text in plot.ticks:
            y = area.bottom() - area.height() * value / plot.top
            painter.setPen(QPen(QColor(colours.border), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(colours.muted))
            room = QRectF(0, y - metrics.height() / 2, area.left() - 6, metrics.height())
            painter.drawText(
                room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text
            )
        free_from = -1.0
        for moment, text in plot.times:
            x, width = _x(plot, area, moment), metrics.horizontalAdvance(text)
            left = min(max(x - width / 2, area.left()), area.right() - width)
            if left < free_from:
                continue  # two of them would overlap in a narrow window
            free_from = left + width + 8
            painter.drawText(
                QRectF(left, area.bottom() + 3, width + 1, metrics.height()),
                Qt.AlignmentFlag.AlignLeft,
                text,
            )

    def _draw_line(
        self, painter: QPainter, plot: Plot, line: Line, area: QRectF, index: int
    ) -> None:
        """The curve in pieces: where nothing was measured there is a gap, not a zero."""
        pen = self._pen(index)
        fill = pen.color()
        fill.setAlpha(FILL_ALPHA)
        for piece in _pieces(line):
            points = [
                QPointF(_x(plot, area, at), area.bottom() - area.height() * value / plot.top)
                for at, value in piece
            ]
            if len(points) == 1:  # a lone value between gaps would be invisible
                points = [points[0] - QPointF(1.5, 0), points[0] + QPointF(1.5, 0)]
            if index == 0:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(fill)
                floor = [QPointF(points[at].x(), area.bottom()) for at in (-1, 0)]
                painter.drawPolygon(QPolygonF([*points, *floor]))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen)
            painter.drawPolyline(QPolygonF(points))


def _x(plot: Plot, area: QRectF, unix_s: float) -> float:
    share = (unix_s - plot.start_unix_s) / (plot.end_unix_s - plot.start_unix_s)
    return area.left() + share * area.width()


def _pieces(line: Line) -> list[list[tuple[float, float]]]:
    """Runs of points that have a value."""
    found: list[list[tuple[float, float]]] = [[]]
    for at, value in line.points:
        if value is not None:
            found[-1].append((at, value))
        elif found[-1]:
            found.append([])
    return [piece for piece in found if piece]


def _value_at(line: Line, unix_s: float | None) -> float | None:
    """The value at a moment; None: the newest."""
    if unix_s is None:
        return newest(line.points)
    return next((value for at, value in line.points if at == unix_s), None)


def _nearest(moments: list[float], unix_s: float) -> float | None:
    return min(moments, key=lambda at: abs(at - unix_s), default=None)
