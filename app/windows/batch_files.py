"""Which files a batch reads and writes: asked in dialogs that do not stop the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFileDialog, QWidget


def choose_input(parent: QWidget, chosen: Callable[[str], None]) -> None:
    """Ask for the file with the rows, then call `chosen` with its path."""
    dialog = QFileDialog(
        parent, QCoreApplication.translate("BatchForm", "Choose the file with the rows")
    )
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setNameFilters(
        [
            QCoreApplication.translate(
                "BatchForm", "Tables, texts and lines of JSON (*.csv *.tsv *.txt *.jsonl *.ndjson)"
            ),
            QCoreApplication.translate("BatchForm", "All files (*)"),
        ]
    )
    dialog.fileSelected.connect(chosen)
    dialog.open()


def choose_output(parent: QWidget, proposed: str, chosen: Callable[[str], None]) -> None:
    """Ask for the file for the results; the dialog itself asks before one is replaced."""
    dialog = QFileDialog(
        parent, QCoreApplication.translate("BatchForm", "Choose the file for the results")
    )
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setNameFilters(
        [
            QCoreApplication.translate("BatchForm", "Lines of JSON (*.jsonl)"),
            QCoreApplication.translate("BatchForm", "Table (*.csv)"),
            QCoreApplication.translate("BatchForm", "All files (*)"),
        ]
    )
    dialog.selectFile(proposed)
    dialog.fileSelected.connect(chosen)
    dialog.open()


def proposed_output(path: str) -> str:
    """Beside the input, in the form that goes with it."""
    file = Path(path)
    return str(file.with_name(proposed_name(file.name))) if path and file.stem else ""


def proposed_name(name: str) -> str:
    """What the results of an input of this name are called."""
    file = Path(name)
    ending = ".csv" if file.suffix.lower() in (".csv", ".tsv") else ".jsonl"
    return f"{file.stem}.results{ending}"


def absolute(path: str) -> str:
    """What the engine, whose folder is another, understands."""
    return str(Path(path).expanduser().absolute())
