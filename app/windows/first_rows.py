"""The table of a file's first rows, each with the prompt that it becomes."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QTableWidget, QTableWidgetItem, QWidget

from app.batch_form_presenters import FormView

WIDEST_COLUMN_PX = 220


class FirstRows(QTableWidget):
    """Draws the rows of a `FormView`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("The first rows"))
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setAlternatingRowColors(True)
        self.verticalHeader().hide()
        self.horizontalHeader().setStretchLastSection(True)
        self.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)

    def show_rows(self, view: FormView, alarm: QColor) -> None:
        """Draw the rows; what is wrong with one stands in `alarm` where its prompt would be."""
        if len(view.header) != self.columnCount():
            self.setColumnCount(len(view.header))
        self.setHorizontalHeaderLabels(list(view.header))
        self.setRowCount(len(view.rows))
        for at, row in enumerate(view.rows):
            for column, text in enumerate(row):
                item = QTableWidgetItem(" ".join(text.split()))
                item.setToolTip(text)
                if at in view.bad_rows and column == len(row) - 1:
                    item.setForeground(alarm)
                self.setItem(at, column, item)
        self.resizeColumnsToContents()
        for column in range(self.columnCount()):
            self.setColumnWidth(column, min(self.columnWidth(column), WIDEST_COLUMN_PX))
