"""How a `Plot` is drawn: title and reading, axes, curves."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QPainter, QPen, QPolygonF

from app.plots import Line, Plot
from app.windows.looks import Looks

FILL_ALPHA = 46
LINE_PX = 1.8
SWATCH_PX = 20.0
GAP_PX = 6.0
SMALL = 0.85
"""Letters of the axes, beside those of the title."""


def curve_area(rect: QRectF, font: QFont, plot: Plot | None) -> QRectF:
    """Where in `rect` the curves are: it leaves room for title and axes."""
    line = QFontMetricsF(font).height()
    metrics = QFontMetricsF(_small(font))
    ticks = () if plot is None else plot.ticks
    left = max((metrics.horizontalAdvance(text) for _, text in ticks), default=0.0) + 10
    return rect.adjusted(left, 2.1 * line, -6, -1.4 * line)


def x_of(plot: Plot, area: QRectF, unix_s: float) -> float:
    """Where in `area` a moment is."""
    share = (unix_s - plot.start_unix_s) / (plot.end_unix_s - plot.start_unix_s)
    return area.left() + share * area.width()


def draw_head(
    painter: QPainter,
    room: QRectF,
    title: str,
    reading: Sequence[tuple[int | None, str]],
    colours: Looks,
) -> None:
    """The title, and at the right the values that are read.

    Args:
        painter: With the widget's font.
        room: For all of it.
        title: What is plotted.
        reading: Texts, each with the number of its curve if a piece of it shall stand before.
        colours: What to draw in.
    """
    font = QFont(painter.font())
    bold = QFont(font)
    bold.setWeight(QFont.Weight.DemiBold)
    painter.setFont(bold)
    painter.setPen(QColor(colours.text))
    centre = Qt.AlignmentFlag.AlignVCenter
    painter.drawText(room, Qt.AlignmentFlag.AlignLeft | centre, title)
    used = QFontMetricsF(bold).horizontalAdvance(title) + 12
    painter.setFont(font)
    metrics = QFontMetricsF(font)
    right = room.right()
    for index, text in reversed(reading):
        width = min(metrics.horizontalAdvance(text), right - room.left() - used)
        place = QRectF(right - width, room.top(), width, room.height())
        painter.setPen(QColor(colours.text))
        painter.drawText(
            place, centre, metrics.elidedText(text, Qt.TextElideMode.ElideRight, width + 1)
        )
        right = place.left() - GAP_PX
        if index is not None:
            left = QPointF(right - SWATCH_PX, room.center().y())
            painter.setPen(_pen(index, colours))
            painter.drawLine(left, left + QPointF(SWATCH_PX, 0))
            right -= SWATCH_PX + 2 * GAP_PX


def draw_axes(painter: QPainter, plot: Plot, area: QRectF, colours: Looks) -> None:
    """Lines and numbers at the left, times below; changes the painter's font."""
    painter.setFont(_small(painter.font()))
    metrics = QFontMetricsF(painter.font())
    for value, text in plot.ticks:
        y = area.bottom() - area.height() * value / plot.top
        painter.setPen(QPen(QColor(colours.border), 1))
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        painter.setPen(QColor(colours.muted))
        room = QRectF(0, y - metrics.height() / 2, area.left() - 6, metrics.height())
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
    free_from = -1.0
    for moment, text in plot.times:
        x, width = x_of(plot, area, moment), metrics.horizontalAdvance(text)
        left = min(max(x - width / 2, area.left()), area.right() - width)
        if left < free_from:
            continue  # two of them would overlap in a narrow window
        free_from = left + width + 8
        painter.drawText(
            QRectF(left, area.bottom() + 3, width + 1, metrics.height()),
            Qt.AlignmentFlag.AlignLeft,
            text,
        )


def draw_curve(painter: QPainter, plot: Plot, index: int, area: QRectF, colours: Looks) -> None:
    """Curve `index` in pieces: where nothing was measured there is a gap, not a zero."""
    pen = _pen(index, colours)
    fill = pen.color()
    fill.setAlpha(FILL_ALPHA)
    for piece in _pieces(plot.lines[index]):
        points = [
            QPointF(x_of(plot, area, at), area.bottom() - area.height() * value / plot.top)
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


def _small(font: QFont) -> QFont:
    smaller = QFont(font)
    smaller.setPixelSize(round(QFontInfo(font).pixelSize() * SMALL))
    return smaller


def _pen(index: int, colours: Looks) -> QPen:
    ink = colours.second if index else colours.accent
    style = Qt.PenStyle.DashLine if index else Qt.PenStyle.SolidLine
    return QPen(QColor(ink), LINE_PX, style)


def _pieces(line: Line) -> list[list[tuple[float, float]]]:
    """Runs of points that have a value."""
    found: list[list[tuple[float, float]]] = [[]]
    for at, value in line.points:
        if value is not None:
            found[-1].append((at, value))
        elif found[-1]:
            found.append([])
    return [piece for piece in found if piece]
