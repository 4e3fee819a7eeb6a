"""The window before all others, in an installed Shoal: fetches the engine, and shows how far it is."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.preparation_presenters import PreparationView
from app.windows.page_layout import framed, heading, muted
from app.windows.top_window import TopWindow

WIDTH_PX = 560
STEPS = 1000


class EngineSetupWindow(TopWindow):
    """Draws a `PreparationView` and tells what the person chose.

    Signals:
        begin_wanted: Download and set up, or try again.
        stop_wanted: Interrupt.
        remove_wanted: Take away what was downloaded.
        quit_wanted: End Shoal.
    """

    begin_wanted = Signal()
    stop_wanted = Signal()
    remove_wanted = Signal()
    quit_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._facts: tuple[tuple[str, str], ...] = ()
        self.setWindowTitle(self.tr("Shoal: setup"))
        self._headline = heading("")
        self._detail = muted("")
        self._problem = QLabel(wordWrap=True)
        self._problem.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._problem_frame = framed("failure", self._problem)
        self._bar = QProgressBar(textVisible=False)
        self._bar.setAccessibleName(self.tr("Progress"))
        self._grid = QGridLayout()
        self.begin = QPushButton()
        self.begin.setObjectName("primary")
        self.stop = QPushButton()
        self.remove = QPushButton(self.tr("&Remove what was downloaded"))
        self.quit = QPushButton(self.tr("&Quit"))
        for button, wanted in (
            (self.begin, self.begin_wanted),
            (self.stop, self.stop_wanted),
            (self.remove, self.remove_wanted),
            (self.quit, self.quit_wanted),
        ):
            button.clicked.connect(wanted)
        self._lay_out()
        self.dress()

    def show_view(self, view: PreparationView) -> None:
        """Draw `view`."""
        self._headline.setText(view.headline)
        self._detail.setText(view.detail)
        self._detail.setVisible(bool(view.detail))
        self._problem.setText(view.problem)
        self._problem.setAccessibleName(view.problem)
        self._problem_frame.setVisible(bool(view.problem))
        self._bar.setVisible(view.has_bar)
        # Without an end the bar just moves.
        self._bar.setRange(0, 0 if view.share is None else STEPS)
        self._bar.setValue(round((view.share or 0) * STEPS))
        for button, text in ((self.begin, view.go_on), (self.stop, view.stop)):
            button.setText(text)
            button.setAccessibleName(text.replace("&", ""))
            button.setVisible(bool(text))
        self.remove.setVisible(view.can_remove)
        if view.facts != self._facts:
            self._facts = view.facts
            self._draw_facts()
        needed = self._column.heightForWidth(self.width())
        if self.height() < needed:
            self.resize(self.width(), needed)

    def bring_up(self) -> None:
        """Show the window before all others, as high as its text needs."""
        self.resize(WIDTH_PX, self._column.heightForWidth(WIDTH_PX))
        super().bring_up()

    def _lay_out(self) -> None:
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.begin, self.stop, self.remove):
            buttons.addWidget(button)
        buttons.addStretch(1)
        buttons.addWidget(self.quit)
        whole = self._column = QVBoxLayout(self)
        whole.setContentsMargins(22, 20, 22, 18)
        whole.setSpacing(14)
        for part in (self._headline, self._detail, self._problem_frame):
            whole.addWidget(part)
        whole.addLayout(self._grid)
        whole.addWidget(self._bar)
        whole.addStretch(1)
        whole.addLayout(buttons)

    def _draw_facts(self) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for row, (name, value) in enumerate(self._facts):
            label = QLabel(name)
            label.setObjectName("fact")
            words = QLabel(value, wordWrap=True)
            words.setAccessibleName(f"{name}: {value}")
            self._grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(words, row, 1)
