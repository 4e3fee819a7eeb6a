"""The dashboard's second page: the last hour, day or week as plots."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.past_presenters import PastView
from app.windows.looks import Looks
from app.windows.plot import PlotWidget
from engine.localapi.statistics import Range

MARGIN_PX = 16
COLUMNS = 2


class ActivityPage(QScrollArea):
    """Draws the plots of a `PastView`.

    Signals:
        range_chosen: Look back so far: a `Range`.
    """

    range_chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._colours: Looks | None = None
        self.plots: list[PlotWidget] = []
        self._frames: list[QFrame] = []
        self.ranges = {
            Range.HOUR: QPushButton(self.tr("Last &hour")),
            Range.DAY: QPushButton(self.tr("Last &day")),
            Range.WEEK: QPushButton(self.tr("Last &week")),
        }
        group = QButtonGroup(self)
        for span, button in self.ranges.items():
            button.setCheckable(True)
            button.setObjectName("choice")
            button.setAccessibleName(button.text().replace("&", ""))
            button.clicked.connect(lambda _=False, span=span: self.range_chosen.emit(span))
            group.addButton(button)
        self._note = QLabel(wordWrap=True)
        self._note.setObjectName("hint")
        self._lay_out()

    def show_view(self, view: PastView) -> None:
        """Draw `view`."""
        self.ranges[view.range].setChecked(True)
        self._note.setText(view.activity_note)
        self._note.setVisible(bool(view.activity_note))
        while len(self.plots) < len(view.plots):
            self._add_plot()
        for at, (drawn, frame) in enumerate(zip(self.plots, self._frames, strict=True)):
            frame.setVisible(at < len(view.plots))
            if at < len(view.plots):
                drawn.show_plot(view.plots[at])

    def set_colours(self, colours: Looks) -> None:
        """Draw in `colours`."""
        self._colours = colours
        for drawn in self.plots:
            drawn.set_colours(colours)

    def _add_plot(self) -> None:
        frame = QFrame()
        frame.setObjectName("card")
        drawn = PlotWidget()
        inside = QVBoxLayout(frame)
        inside.setContentsMargins(8, 6, 8, 6)
        inside.addWidget(drawn)
        if self._colours is not None:
            drawn.set_colours(self._colours)
        at = len(self.plots)
        self._grid.addWidget(frame, at // COLUMNS, at % COLUMNS)
        self.plots.append(drawn)
        self._frames.append(frame)

    def _lay_out(self) -> None:
        page = QWidget()
        page.setObjectName("page")
        self.setWidget(page)
        row = QHBoxLayout()
        row.setSpacing(6)
        for button in self.ranges.values():
            row.addWidget(button)
        row.addStretch(1)
        self._grid = QGridLayout()
        self._grid.setSpacing(12)
        for column in range(COLUMNS):
            self._grid.setColumnStretch(column, 1)
        whole = QVBoxLayout(page)
        whole.setContentsMargins(MARGIN_PX, MARGIN_PX, MARGIN_PX, MARGIN_PX)
        whole.setSpacing(12)
        whole.addLayout(row)
        whole.addWidget(self._note, 0, Qt.AlignmentFlag.AlignTop)
        whole.addLayout(self._grid, 1)
