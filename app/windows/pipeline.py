"""The pipeline as a picture: a box for each node's blocks, arrows along a token's way."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.pipeline_presenters import Arrow, Box, PipelineView
from app.windows.looks import Looks

MAX_LANES = 3
"""Rows of nodes beside the pipeline; more are counted in words."""
ARROW_HEAD_PX = 5.0


class PipelinePicture(QWidget):
    """Draws a `PipelineView`; as wide as its boxes need, so put it into a scroll area."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view: PipelineView | None = None
        self._colours: Looks | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Picture of the pipeline"))

    def show_view(self, view: PipelineView | None) -> None:
        """Draw `view`, or nothing."""
        if view != self._view:
            self._view = view
            self.setAccessibleDescription("" if view is None else view.as_text)
            self.updateGeometry()
            self.update()

    def set_colours(self, colours: Looks) -> None:
        """Draw in `colours`."""
        self._colours = colours
        self.update()

    def boxes(self) -> list[tuple[QRectF, Box]]:
        """Every box and where it is drawn."""
        return [*self._stages(), *self._lanes()[0]]

    def minimumSizeHint(self) -> QSize:
        """What keeps every text whole."""
        view = self._view
        if view is None:
            return QSize(0, 0)
        count, line = len(view.stages), self._line()
        width = sum(self._least(box) for box in view.stages) + max(count - 1, 0) * self._gap()
        height = 0.0 if not count else self._box_height() + (2.2 * line if count > 1 else 0)
        _, lanes, left_out = self._lanes(width)
        height += lanes * (self._lane_height() + 0.4 * line) + (1.2 * line if lanes else 0)
        height += 1.3 * line if left_out else 0
        return QSize(round(max(width, 24 * line)) + 2, round(height) + 4)

    def sizeHint(self) -> QSize:
        """The least: more width is used for the boxes."""
        return self.minimumSizeHint()

    def event(self, event: QEvent) -> bool:
        """Say of a box under the pointer what may be too narrow to read."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            at = QPointF(event.pos())
            box = next((box for place, box in self.boxes() if place.contains(at)), None)
            text = "" if box is None else "\n".join(filter(None, (box.name, box.blocks, box.time)))
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    def changeEvent(self, event: QEvent) -> None:
        """Larger letters need larger boxes."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self.updateGeometry()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Boxes, then arrows."""
        if self._view is None or self._colours is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        stages = self._stages()
        for place, box in stages:
            self._draw_box(painter, place, box)
        for index, arrow in enumerate(self._view.arrows[:-1]):
            self._draw_arrow(painter, stages[index][0], stages[index + 1][0], arrow)
        if self._view.arrows:
            self._draw_return(painter, stages[-1][0], stages[0][0], self._view.arrows[-1])
        self._draw_lanes(painter)
        painter.end()

    # Places ---------------------------------------------------------------------------------

    def _stages(self) -> list[tuple[QRectF, Box]]:
        view = self._view
        if view is None or not view.stages:
            return []
        least = [self._least(box) for box in view.stages]
        count = len(least)
        spare = max(self.width() - 2 - sum(least) - (count - 1) * self._gap(), 0.0)
        blocks = sum(box.end - box.start for box in view.stages) or 1
        x, found = 1.0, []
        for box, width in zip(view.stages, least, strict=True):
            whole = width + spare * (box.end - box.start) / blocks
            found.append((QRectF(x, 1, whole, self._box_height()), box))
            x += whole + self._gap()
        return found

    def _lanes(self, width: float | None = None) -> tuple[list[tuple[QRectF, Box]], int, int]:
        """Places of the nodes beside the pipeline, the number of rows, and how many are left out."""
        view = self._view
        if view is None:
            return [], 0, 0
        place = self._scale(self.width() - 2 if width is None else width)
        stages, line = self._stages(), self._line()
        top = 1.0
        if stages:
            top += self._box_height() + (2.2 * line if view.arrows else 0)
        top += 1.2 * line if view.beside or view.missing else 0
        ends: list[int] = []
        found, left_out = [], 0
        for box in sorted((*view.missing, *view.beside), key=lambda box: (box.start, box.end)):
            lane = next((at for at, end in enumerate(ends) if end <= box.start), len(ends))
            if lane == MAX_LANES:
                left_out += 1
                continue
            ends[lane : lane + 1] = [box.end]
            x, y = place(box.start), top + lane * (self._lane_height() + 0.4 * line)
            found.append((QRectF(x, y, place(box.end) - x - 3, self._lane_height()), box))
        return found, len(ends), left_out

    def _scale(self, width: float) -> Callable[[int], float]:
        """Where a block lies from left to right: under the box that holds it, if one does."""
        stages = self._stages()
        if not stages:
            blocks = self._view.num_blocks if self._view else 1
            return lambda block: 1.0 + width * block / max(blocks, 1)

        def place(block: int) -> float:
            for rect, box in stages:
                if block <= box.end:
                    share = (block - box.start) / max(box.end - box.start, 1)
                    return rect.left() + max(share, 0.0) * rect.width()
            return stages[-1][0].right()

        return place

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _box_height(self) -> float:
        return 4.6 * self._line()

    def _lane_height(self) -> float:
        return 1.6 * self._line()

    def _gap(self) -> float:
        """Room for an arrow and the words on it."""
        arrows = self._view.arrows if self._view else ()
        metrics = QFontMetricsF(self._small())
        words = [text for arrow in arrows[:-1] for text in (arrow.time, arrow.path)]
        return max([3.0 * self._line(), *(metrics.horizontalAdvance(text) + 14 for text in words)])

    def _least(self, box: Box) -> float:
        metrics = QFontMetricsF(self._bold())
        texts = (box.name, box.blocks, box.time, self.tr("slowest") if box.is_slowest else "")
        return max(metrics.horizontalAdvance(text) for text in texts) + 24

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return font

    def _small(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.9)
        return font

    # Drawing --------------------------------------------------------------------------------

    def _draw_box(self, painter: QPainter, place: QRectF, box: Box) -> None:
        colours = self._colours
        assert colours is not None
        edge = colours.alarm if box.is_slowest else colours.border
        painter.setPen(QPen(QColor(edge), 2 if box.is_slowest else 1))
        painter.setBrush(QColor(colours.accent if box.is_self else colours.code))
        painter.drawRoundedRect(place, 8, 8)
        ink = QColor(colours.on_accent if box.is_self else colours.text)
        lines = [(self._bold(), box.name), (self.font(), box.blocks), (self.font(), box.time)]
        if box.is_slowest:
            lines.append((self._bold(), self.tr("slowest")))
        lines = [(font, text) for font, text in lines if text]
        y = place.top() + (place.height() - len(lines) * self._line()) / 2
        for font, text in lines:
            self._write(painter, QRectF(place.left() + 4, y, place.width() - 8, self._line()),
                        text, font, ink)  # fmt: skip
            y += self._line()

    def _draw_arrow(self, painter: QPainter, left: QRectF, right: QRectF, arrow: Arrow) -> None:
        y = left.center().y()
        start, end = QPointF(left.right() + 4, y), QPointF(right.left() - 4, y)
        ink = self._ink(arrow)
        painter.setPen(QPen(ink, 2 if arrow.is_slowest else 1.2))
        painter.drawLine(start, end)
        self._draw_head(painter, end, to_right=True)
        room = QRectF(
            left.right(), y - 1.3 * self._line(), right.left() - left.right(), self._line()
        )
        self._write(painter, room, arrow.time, self._small(), ink)
        words = self.tr("slowest") if arrow.is_slowest else arrow.path
        self._write(painter, room.translated(0, 1.5 * self._line()), words, self._small(), ink)

    def _draw_return(self, painter: QPainter, last: QRectF, first: QRectF, arrow: Arrow) -> None:
        """From the last stage back to the first, below the boxes."""
        y, ink = last.bottom() + 0.7 * self._line(), self._ink(arrow)
        painter.setPen(QPen(ink, 2 if arrow.is_slowest else 1.2))
        corner, home = QPointF(last.center().x(), y), QPointF(first.center().x(), y)
        painter.drawPolyline(
            [QPointF(corner.x(), last.bottom() + 3), corner, home,
             QPointF(home.x(), first.bottom() + 3)]
        )  # fmt: skip
        self._draw_head(painter, QPointF(home.x(), first.bottom() + 3), to_right=False)
        told = (arrow.time, arrow.path, self.tr("slowest") if arrow.is_slowest else "")
        words = " · ".join(filter(None, (self.tr("the next token"), *told)))
        room = QRectF(home.x(), y + 0.15 * self._line(), corner.x() - home.x(), 1.1 * self._line())
        self._write(painter, room, words, self._small(), ink)

    def _draw_head(self, painter: QPainter, tip: QPointF, *, to_right: bool) -> None:
        dx, dy = (-ARROW_HEAD_PX, ARROW_HEAD_PX) if to_right else (ARROW_HEAD_PX, ARROW_HEAD_PX)
        ends = (
            (QPointF(dx, dy), QPointF(dx, -dy)) if to_right else (QPointF(dx, dy), QPointF(-dx, dy))
        )
        for end in ends:
            painter.drawLine(tip, tip + end)

    def _draw_lanes(self, painter: QPainter) -> None:
        colours, view = self._colours, self._view
        assert colours is not None
        assert view is not None
        placed, lanes, left_out = self._lanes()
        if not placed:
            return
        muted, line = QColor(colours.muted), self._line()
        title = self.tr("Beside it") if view.stages else self.tr("Who holds what")
        top = placed[0][0].top() if placed else 0.0
        self._write(painter, QRectF(1, top - 1.25 * line, self.width(), line), title,
                    self._small(), muted, Qt.AlignmentFlag.AlignLeft)  # fmt: skip
        for place, box in placed:
            is_gap = box in view.missing
            pen = QPen(QColor(colours.alarm if is_gap else colours.border), 1)
            pen.setStyle(Qt.PenStyle.DashLine if is_gap else Qt.PenStyle.SolidLine)
            painter.setPen(pen)
            fill = colours.warning if is_gap else colours.accent if box.is_self else colours.code
            painter.setBrush(QColor(fill))
            painter.drawRoundedRect(place, 5, 5)
            ink = QColor(colours.on_accent if box.is_self else colours.text)
            words = self._short_words(box, place.width() - 8)
            self._write(painter, place.adjusted(4, 0, -4, 0), words, self._small(), ink)
        if left_out:
            y = top + lanes * (self._lane_height() + 0.4 * line)
            words = self.tr("and {n} more").format(n=left_out)
            self._write(painter, QRectF(1, y, self.width(), line), words, self._small(), muted,
                        Qt.AlignmentFlag.AlignLeft)  # fmt: skip

    def _short_words(self, box: Box, width: float) -> str:
        """As much as fits."""
        metrics = QFontMetricsF(self._small())
        fitting = (
            text
            for text in (f"{box.name} · {box.numbers}", box.name)
            if metrics.horizontalAdvance(text) <= width
        )
        return next(fitting, box.numbers)

    def _ink(self, arrow: Arrow) -> QColor:
        assert self._colours is not None
        return QColor(self._colours.alarm if arrow.is_slowest else self._colours.muted)

    def _write(
        self,
        painter: QPainter,
        room: QRectF,
        text: str,
        font: QFont,
        ink: QColor,
        align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignHCenter,
    ) -> None:
        painter.setFont(font)
        painter.setPen(ink)
        short = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, align | Qt.AlignmentFlag.AlignVCenter, short)
