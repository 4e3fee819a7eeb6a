"""The form for a new batch: which file, how its rows become prompts, where results go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.batch_form_presenters import FormView
from app.batch_presenters import PRIORITIES
from app.windows.batch_files import absolute, choose_input, choose_output, proposed_output
from app.windows.first_rows import FirstRows
from engine.localapi.jobs import JobCreateRequest, JobFormat, JobPreviewRequest

LOOK_AFTER_MS = 300
"""How long the person must not type before the first rows are drawn anew."""
MAX_ANSWER_TOKENS = 32_768
_NO_FORM = FormView("", (), (), (), frozenset(), "", "", can_start=False)


class BatchForm(QWidget):
    """Draws a `FormView` and tells what the person has described.

    Signals:
        preview_wanted: A `JobPreviewRequest`, or None: no file is named.
        create_wanted: A `JobCreateRequest`.
    """

    preview_wanted = Signal(object)
    create_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._view = _NO_FORM
        self._proposed = ""
        self.input, self.choose_input = self._file_row(self.tr("File with the rows"))
        self.output, self.choose_output = self._file_row(self.tr("File for the results"))
        self.input.setPlaceholderText(self.tr("A table (CSV), a text, or lines of JSON"))
        self.format = QComboBox()
        for label, value in (
            (self.tr("Found by itself"), None), (self.tr("Lines of JSON (OpenAI's too)"), "jsonl"),
            (self.tr("Table (CSV)"), "csv"), (self.tr("Text, one prompt on each line"), "txt"),
        ):  # fmt: skip
            self.format.addItem(label, value)
        self.format.setAccessibleName(self.tr("Format of the file"))
        self._detected = QLabel(wordWrap=True)
        self._detected.setObjectName("hint")
        self.template = self._text(self.tr("Prompt"), 3)
        self.template.setPlaceholderText(
            self.tr("Summarize in one sentence: {text}, with a column's name in braces")
        )
        self.columns = QPushButton(self.tr("&Insert column"))
        self.columns.setAccessibleName(self.tr("Insert a column into the prompt"))
        self._column_menu = QMenu(self.columns)
        self.columns.setMenu(self._column_menu)
        self.system = self._text(self.tr("System prompt"), 2)
        self.system.setPlaceholderText(self.tr("Instructions before each prompt; may be empty"))
        self.tokens = QSpinBox(minimum=0, maximum=MAX_ANSWER_TOKENS, singleStep=64)
        self.tokens.setSpecialValueText(self.tr("No limit of its own"))
        self.tokens.setAccessibleName(self.tr("Longest answer, in tokens"))
        self.priority = QComboBox()
        for label, priority in zip(priority_labels(self), PRIORITIES, strict=True):
            self.priority.addItem(label, priority)
        self.priority.setCurrentIndex(1)
        self.priority.setAccessibleName(self.tr("Priority"))
        self.overwrite = QCheckBox(self.tr("Re&place this file if it is there"))
        self._note = QLabel(wordWrap=True)
        self._note.setObjectName("hint")
        self._problem = QLabel(wordWrap=True)
        self._problem.setObjectName("problem")
        self._problem.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.rows = FirstRows()
        self.start = QPushButton(self.tr("Check and &start"))
        self.start.setObjectName("primary")
        QShortcut(QKeySequence("Ctrl+Return"), self, self._create)
        self.start.setAccessibleName(self.tr("Check all rows and start"))
        self._look_soon = QTimer(self, singleShot=True, interval=LOOK_AFTER_MS)
        self._look_soon.timeout.connect(self._look)
        self._lay_out()
        self._join()
        self.show_view(replace(_NO_FORM, note=" "))

    def take_file(self, path: str) -> None:
        """Use an input that was chosen or dropped."""
        self.input.setText(path)
        self._look()

    def clear(self) -> None:
        """Ready for another one; the prompt stays, for it is often used again."""
        self._proposed = ""
        for field in (self.input, self.output):
            field.clear()
        self.overwrite.setChecked(False)

    def show_view(self, view: FormView) -> None:
        """Draw `view`."""
        old, self._view = self._view, view
        for label, text in (
            (self._detected, view.detected),
            (self._note, view.note),
            (self._problem, view.problem),
        ):
            label.setText(text)
            label.setVisible(bool(text.strip()))
        self.start.setEnabled(view.can_start)
        if view.columns != old.columns:
            self._column_menu.clear()
            for name in view.columns:
                entry = self._column_menu.addAction(name.replace("&", "&&"))
                entry.triggered.connect(lambda _=False, name=name: self._insert(name))
        self.columns.setEnabled(bool(view.columns))
        self.rows.setVisible(bool(view.rows))
        if (view.header, view.rows) != (old.header, old.rows):
            self.rows.show_rows(view, self._problem.palette().color(self.foregroundRole()))

    def request(self) -> JobCreateRequest | None:
        """What the person has described; None while something is missing."""
        wanted = self._preview_request()
        if wanted is None:
            return None
        output = self.output.text().strip()
        try:
            return JobCreateRequest(
                **wanted.model_dump(exclude={"rows"}),
                output_path=absolute(output) if output else None,
                overwrite=self.overwrite.isChecked(),
                priority=self.priority.currentData(),
            )
        except ValidationError:  # a path longer than any file system takes
            return None

    def _preview_request(self) -> JobPreviewRequest | None:
        path = self.input.text().strip()
        if not path:
            return None
        format_: JobFormat | None = self.format.currentData()
        limit = self.tokens.value()
        try:
            return JobPreviewRequest(
                input_path=absolute(path),
                format=format_,
                template=self.template.toPlainText() or None,
                system=self.system.toPlainText().strip() or None,
                parameters={"max_tokens": limit} if limit else {},
            )
        except ValidationError:
            return None

    def _look(self) -> None:
        self._look_soon.stop()
        path = self.input.text().strip()
        if self.output.text() == self._proposed:  # the person has named no other
            self._proposed = proposed_output(path)
            self.output.setText(self._proposed)
        self.preview_wanted.emit(self._preview_request())

    def _insert(self, column: str) -> None:
        self.template.insertPlainText("{" + column + "}")
        self.template.setFocus()

    def _create(self) -> None:
        wanted = self.request()
        if wanted is not None and self.start.isEnabled():
            self.create_wanted.emit(wanted)

    def _take_output(self, path: str) -> None:
        self.output.setText(path)
        self.overwrite.setChecked(Path(path).exists())  # the dialog has asked

    def _file_row(self, name: str) -> tuple[QLineEdit, QPushButton]:
        field, button = QLineEdit(), QPushButton(self.tr("Choose…"))
        field.setAccessibleName(name)
        button.setAccessibleName(self.tr("Choose: {what}").format(what=name))
        return field, button

    def _text(self, name: str, lines: int) -> QPlainTextEdit:
        field = QPlainTextEdit()
        field.setObjectName("field")
        field.setAccessibleName(name)
        field.setTabChangesFocus(True)
        field.setFixedHeight(field.fontMetrics().lineSpacing() * lines + 22)
        return field

    def _join(self) -> None:
        self.choose_input.clicked.connect(lambda: choose_input(self, self.take_file))
        self.choose_output.clicked.connect(
            lambda: choose_output(self, self.output.text(), self._take_output)
        )
        self.start.clicked.connect(self._create)
        for changed in (
            self.input.textEdited,
            self.template.textChanged,
            self.system.textChanged,
            self.tokens.valueChanged,
            self.format.currentIndexChanged,
        ):
            changed.connect(self._look_soon.start)

    def _lay_out(self) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)

        def line(label: str, widget: QWidget, *beside: QWidget) -> None:
            at = grid.rowCount()
            name = QLabel(label)
            name.setObjectName("fact")
            name.setBuddy(widget)
            is_high = isinstance(widget, QPlainTextEdit)
            top = Qt.AlignmentFlag.AlignTop if is_high else Qt.AlignmentFlag.AlignVCenter
            grid.addWidget(name, at, 0, top)
            row = QHBoxLayout()
            row.setSpacing(8)
            row.addWidget(widget, 1)
            for other in beside:
                row.addWidget(other, 0, Qt.AlignmentFlag.AlignTop)
            grid.addLayout(row, at, 1)

        line(self.tr("&File"), self.input, self.choose_input)
        line(self.tr("For&mat"), self.format)
        grid.addWidget(self._detected, grid.rowCount(), 1)
        line(self.tr("Promp&t"), self.template, self.columns)
        line(self.tr("S&ystem prompt"), self.system)
        line(self.tr("&Longest answer"), self.tokens)
        line(self.tr("Res&ults"), self.output, self.choose_output)
        grid.addWidget(self.overwrite, grid.rowCount(), 1)
        line(self.tr("Pri&ority"), self.priority)
        foot = QHBoxLayout()
        foot.setSpacing(12)
        foot.addWidget(self._problem, 1)
        foot.addStretch(0)
        foot.addWidget(self.start, 0, Qt.AlignmentFlag.AlignBottom)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(18, 8, 18, 14)
        whole.setSpacing(10)
        whole.addLayout(grid)
        whole.addWidget(self._note)
        whole.addWidget(self.rows, 1)
        whole.addStretch(0)  # takes the room of a table that is not there
        whole.addLayout(foot)


def priority_labels(widget: QWidget) -> tuple[str, str, str]:
    """What `PRIORITIES` are called."""
    return (
        widget.tr("Low: after other batches"),
        widget.tr("Normal"),
        widget.tr("High: before other batches"),
    )
