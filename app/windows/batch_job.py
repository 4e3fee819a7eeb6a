"""One batch: how far it is, what can be done about it, and its rows."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QListWidget,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.batch_presenters import PRIORITIES, JobView, RowsView
from app.batch_rows import ANSWER, LINE, NAME, PROMPT, STATE, RowTableModel
from app.windows.batch_form import priority_labels
from app.windows.elided import ElidedLabel

PROGRESS_STEPS = 1000


class BatchPage(QWidget):
    """Draws a `JobView` and a `RowsView`, and tells what the person wants.

    Signals:
        ordered: Id of the job and an order: start, pause, resume, cancel or retry.
        delete_wanted: Id of a job that shall go to the trash.
        priority_wanted: Id of the job and its new priority.
        folder_wanted: Path of the results, whose folder shall be shown.
        save_wanted: Id of a job whose results have no file yet.
        failed_wanted: Whether only failed rows shall be shown.
    """

    ordered = Signal(str, str)
    delete_wanted = Signal(str)
    priority_wanted = Signal(str, int)
    folder_wanted = Signal(str)
    save_wanted = Signal(str)
    failed_wanted = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._view: JobView | None = None
        self._title = ElidedLabel()
        self._title.setObjectName("jobTitle")
        self._state = QLabel()
        self._state.setObjectName("badge")
        self._detail = QLabel(wordWrap=True)
        self._detail.setObjectName("hint")
        self._progress = QProgressBar(textVisible=False)
        self._progress.setAccessibleName(self.tr("Progress"))
        self._grid = QGridLayout()
        self.start, self.pause, self.resume, self.retry, self.results, self.cancel, self.delete = (
            QPushButton() for _ in range(7)
        )
        self.start.setObjectName("primary")
        self.priority = QComboBox()
        self.priority.addItems(list(priority_labels(self)))
        self.priority.setAccessibleName(self.tr("Priority"))
        self._problems_title = QLabel(wordWrap=True)
        self._problems_title.setObjectName("problem")
        self.problems = QListWidget()
        self.problems.setAccessibleName(self.tr("Rows that cannot be asked"))
        self.problems.setWordWrap(True)
        self.failed = QCheckBox(self.tr("Only fail&ed rows"))
        self.model = RowTableModel(self)
        self.rows = QTableView()
        self._set_up_rows()
        self._lay_out()
        for button, order in (
            (self.start, "start"),
            (self.pause, "pause"),
            (self.resume, "resume"),
            (self.retry, "retry"),
            (self.cancel, "cancel"),
        ):
            button.clicked.connect(lambda _=False, order=order: self._order(order))
        self.delete.clicked.connect(self._delete)
        self.results.clicked.connect(self._show_results)
        self.priority.activated.connect(self._on_priority)
        self.failed.toggled.connect(self.failed_wanted)

    def show_view(self, view: JobView, rows: RowsView) -> None:
        """Draw both."""
        self.model.show_view(rows)
        if self.failed.isChecked() != rows.only_failed:
            self.failed.blockSignals(True)
            self.failed.setChecked(rows.only_failed)
            self.failed.blockSignals(False)
        if view == self._view:
            return
        old, self._view = self._view, view
        self._title.setText(view.title)
        self._state.setText(view.state)
        self._detail.setText(view.detail)
        self._detail.setVisible(bool(view.detail))
        self._progress.setRange(0, 0 if view.share < 0 else PROGRESS_STEPS)
        self._progress.setValue(round(max(view.share, 0.0) * PROGRESS_STEPS))
        for button, action in (
            (self.start, view.start),
            (self.pause, view.pause),
            (self.resume, view.resume),
            (self.retry, view.retry),
            (self.results, view.results),
            (self.cancel, view.cancel),
            (self.delete, view.delete),
        ):
            button.setText(action.label)
            button.setAccessibleName(action.label.replace("&", ""))
            button.setVisible(action.visible)
            button.setEnabled(action.enabled)
        self._show_priority(view)
        if old is None or view.facts != old.facts:
            self._draw_facts(view.facts)
        if old is None or view.problems != old.problems:
            self.problems.clear()
            self.problems.addItems(list(view.problems))
        self._problems_title.setText(view.problems_title)
        for widget in (self._problems_title, self.problems):
            widget.setVisible(bool(view.problems))

    def _show_priority(self, view: JobView) -> None:
        self.priority.setEnabled(view.can_change_priority)
        others = self.priority.count() > len(PRIORITIES)
        if view.priority is None:
            if not others:
                self.priority.addItem("")
            self.priority.setItemText(len(PRIORITIES), view.priority_label)
            self.priority.setCurrentIndex(len(PRIORITIES))
            return
        if others:
            self.priority.removeItem(len(PRIORITIES))
        self.priority.setCurrentIndex(view.priority)

    def _on_priority(self, index: int) -> None:
        if self._view is not None and index < len(PRIORITIES):
            self.priority_wanted.emit(self._view.id, PRIORITIES[index])

    def _order(self, order: str) -> None:
        if self._view is not None:
            self.ordered.emit(self._view.id, order)

    def _show_results(self) -> None:
        if self._view is None:
            return
        if self._view.output_path is None:
            self.save_wanted.emit(self._view.id)
        else:
            self.folder_wanted.emit(self._view.output_path)

    def _delete(self) -> None:
        if self._view is not None:
            self.delete_wanted.emit(self._view.id)

    def _draw_facts(self, facts: tuple[tuple[str, str], ...]) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for at, (name, value) in enumerate(facts):
            label = QLabel(name)
            label.setObjectName("fact")
            number = ElidedLabel()
            number.setText(value)
            number.setAccessibleName(f"{name}: {value}")
            self._grid.addWidget(label, at, 0)
            self._grid.addWidget(number, at, 1)

    def _set_up_rows(self) -> None:
        rows = self.rows
        rows.setModel(self.model)
        rows.setAccessibleName(self.tr("Rows of the batch"))
        rows.setAlternatingRowColors(True)
        rows.setShowGrid(False)
        rows.setTabKeyNavigation(False)
        rows.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        rows.setWordWrap(False)
        rows.verticalHeader().hide()
        # Measuring 50,000 rows would hold up the window, so all are as high as a line.
        rows.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.verticalHeader().setDefaultSectionSize(rows.fontMetrics().lineSpacing() + 8)
        head = rows.horizontalHeader()
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for column in (PROMPT, ANSWER):
            head.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        head.setHighlightSections(False)
        head.setMinimumHeight(round(1.8 * rows.fontMetrics().height()))
        letter = rows.fontMetrics().averageCharWidth()
        for column, letters in ((LINE, 9), (NAME, 16), (STATE, 22)):
            rows.setColumnWidth(column, letters * letter)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(self._title, 1)
        head.addWidget(self._state)
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(1, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.start, self.resume, self.pause, self.retry, self.results):
            buttons.addWidget(button)
        buttons.addStretch(1)
        label = QLabel(self.tr("Pri&ority"))
        label.setObjectName("fact")
        label.setBuddy(self.priority)
        buttons.addWidget(label)
        buttons.addWidget(self.priority)
        for button in (self.cancel, self.delete):
            buttons.addWidget(button)
        self.problems.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.problems.setMinimumHeight(90)
        line = QFrame()
        line.setObjectName("line")
        whole = QVBoxLayout(self)
        whole.setContentsMargins(18, 8, 18, 14)
        whole.setSpacing(10)
        whole.addLayout(head)
        whole.addWidget(self._detail)
        whole.addWidget(self._progress)
        whole.addLayout(self._grid)
        whole.addLayout(buttons)
        whole.addWidget(line)
        whole.addWidget(self._problems_title)
        whole.addWidget(self.problems, 1)
        whole.addWidget(self.failed)
        whole.addWidget(self.rows, 2)
