"""One setting: its name, its editor, and what it means."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.settings_presenters import Kind, Row

LINES_HEIGHT_PX = 74
SPIN_WIDTH_PX = 230
SPIN_HEIGHT_PX = 30


class SettingEditor(QWidget):
    """Draws a value of the engine and tells when the person has changed it.

    Signals:
        edited: The editor shows another value than before.
    """

    edited = Signal()

    def __init__(self, row: Row, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.row = row
        self._shown: Any = None
        self.editor = self._editor()
        self.editor.setAccessibleName(row.label)
        self.editor.setAccessibleDescription(row.hint)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        if row.kind is not Kind.SWITCH:
            label = QLabel(row.label, wordWrap=True)
            label.setBuddy(self.editor)
            column.addWidget(label)
        column.addWidget(self.editor)
        if row.hint:
            hint = QLabel(row.hint, wordWrap=True)
            hint.setObjectName("hint")
            column.addWidget(hint)

    @property
    def value(self) -> Any:
        """What the editor shows, in the engine's unit."""
        editor, row = self.editor, self.row
        if isinstance(editor, QCheckBox):
            return editor.isChecked()
        if isinstance(editor, QDoubleSpinBox):
            number = editor.value() * row.scale
            return round(number) if row.is_whole else number
        if isinstance(editor, QPlainTextEdit):
            return [line.strip() for line in editor.toPlainText().splitlines() if line.strip()]
        if isinstance(editor, QComboBox):
            return editor.currentData()
        assert isinstance(editor, QLineEdit)
        return editor.text().strip()

    @property
    def is_changed(self) -> bool:
        """Whether it shows another value than the engine has."""
        return self._shown is not None and self.value != self._shown

    def show_value(self, value: Any, *, is_settled: bool) -> None:
        """Show what the engine has; a setting that the command line has settled cannot be edited."""
        self.setEnabled(not is_settled)
        self.editor.blockSignals(True)
        editor = self.editor
        if isinstance(editor, QCheckBox):
            editor.setChecked(bool(value))
        elif isinstance(editor, QDoubleSpinBox):
            editor.setValue(float(value) / self.row.scale)
        elif isinstance(editor, QPlainTextEdit):
            editor.setPlainText("\n".join(map(str, value)))
        elif isinstance(editor, QComboBox):
            if editor.findData(value) < 0:
                editor.addItem(str(value), value)
            editor.setCurrentIndex(editor.findData(value))
        elif isinstance(editor, QLineEdit):
            editor.setText(str(value))
        self.editor.blockSignals(False)
        # As the editor has it: what it rounds is no change of the person's.
        self._shown = self.value

    def offer(self, choices: tuple[tuple[str, str], ...]) -> None:
        """Offer other choices, the chosen one stays."""
        editor = self.editor
        if isinstance(editor, QComboBox):
            for value, words in choices:
                if editor.findData(value) < 0:
                    editor.addItem(words, value)

    def _editor(self) -> QWidget:
        row = self.row
        match row.kind:
            case Kind.SWITCH:
                box = QCheckBox(row.label)
                box.toggled.connect(lambda: self.edited.emit())
                return box
            case Kind.NUMBER:
                return self._number()
            case Kind.LINES:
                lines = QPlainTextEdit(tabChangesFocus=True)
                lines.setObjectName("field")
                lines.setFixedHeight(LINES_HEIGHT_PX)
                lines.textChanged.connect(self.edited)
                return lines
            case Kind.CHOICE:
                combo = QComboBox()
                combo.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
                for value, words in row.choices:
                    combo.addItem(words, value)
                combo.currentIndexChanged.connect(lambda: self.edited.emit())
                return combo
            case Kind.TEXT:
                text = QLineEdit(maxLength=4096)
                text.textChanged.connect(lambda: self.edited.emit())
                return text

    def _number(self) -> QDoubleSpinBox:
        row = self.row
        spin = QDoubleSpinBox(decimals=row.decimals, maximum=row.most)
        spin.setMinimumHeight(SPIN_HEIGHT_PX)
        spin.setSuffix(row.unit)
        spin.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        if row.zero:
            spin.setSpecialValueText(row.zero)
        spin.setFixedWidth(max(SPIN_WIDTH_PX, spin.sizeHint().width()))
        spin.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        spin.valueChanged.connect(lambda: self.edited.emit())
        return spin
