"""Alone, in a swarm of one's own, or in that of an invite."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

INDENT_PX = 26
LONGEST_INVITE = 8192


class Way(StrEnum):
    """How the node shall begin."""

    ALONE = "alone"
    CREATE = "create"
    JOIN = "join"


@dataclass(frozen=True, slots=True)
class Choice:
    """What the person has chosen."""

    way: Way
    name: str = ""
    private: bool = True
    invite: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether it says all that it must."""
        return {
            Way.ALONE: True,
            Way.CREATE: bool(self.name),
            Way.JOIN: self.invite.startswith("shoal://"),
        }[self.way]


class SwarmChoice(QWidget):
    """Three ways, each with what it needs.

    Signals:
        changed: Something was chosen or typed.
        refused: Why a file could not be used, as a sentence.
    """

    changed = Signal()
    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.alone = QRadioButton(self.tr("&Alone on this computer: nothing leaves it"))
        self.create_swarm = QRadioButton(self.tr("&Found a swarm and invite others"))
        self.join = QRadioButton(self.tr("&Join a swarm with an invite"))
        self.name = QLineEdit(maxLength=64, placeholderText=self.tr("Its name"))
        self.name.setAccessibleName(self.tr("Name of the swarm"))
        self.private = QCheckBox(self.tr("&Private: only who has the invite gets in"))
        self.private.setChecked(True)
        self.invite = QLineEdit(
            maxLength=LONGEST_INVITE, placeholderText=self.tr("Paste the invite: shoal://…")
        )
        self.invite.setAccessibleName(self.tr("Invite"))
        self.open_file = QPushButton(self.tr("&Open a file…"))
        self.alone.setChecked(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(9)
        column.addWidget(self.alone)
        column.addWidget(self.create_swarm)
        column.addLayout(self._indented(self.name))
        column.addLayout(self._indented(self.private))
        column.addWidget(self.join)
        column.addLayout(self._indented(self.invite, self.open_file))
        for button in (self.alone, self.create_swarm, self.join):
            button.toggled.connect(self._on_changed)
        self.name.textEdited.connect(lambda: self.create_swarm.setChecked(True))
        self.invite.textEdited.connect(lambda: self.join.setChecked(True))
        for field in (self.name, self.invite):
            field.textChanged.connect(lambda: self.changed.emit())
        self.private.toggled.connect(lambda: self.changed.emit())
        self.open_file.clicked.connect(self._choose_file)

    @property
    def choice(self) -> Choice:
        """What is chosen now."""
        way = (
            Way.CREATE
            if self.create_swarm.isChecked()
            else Way.JOIN
            if self.join.isChecked()
            else Way.ALONE
        )
        return Choice(
            way, self.name.text().strip(), self.private.isChecked(), self.invite.text().strip()
        )

    def take_invite(self, text: str) -> None:
        """An invite has been given by link or file: choose to join."""
        self.invite.setText(text)
        self.join.setChecked(True)

    def read_file(self, path: Path) -> None:
        """Take the invite in a `.shoal` file."""
        try:
            with path.open("rb") as file:
                text = file.read(LONGEST_INVITE).decode().strip()
        except (OSError, UnicodeDecodeError):
            text = ""
        if text.startswith("shoal://"):
            self.take_invite(text)
        else:
            self.refused.emit(
                self.tr("{file} holds no invite: it must begin with shoal://.").format(file=path)
            )

    def _choose_file(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(
            self, self.tr("Open an invite"), "", self.tr("Invites (*.shoal);;All files (*)")
        )
        if chosen:
            self.read_file(Path(chosen))

    def _indented(self, *widgets: QWidget) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(INDENT_PX, 0, 0, 0)
        row.setSpacing(8)
        for widget in widgets:
            row.addWidget(widget)
        return row

    def _on_changed(self, on: bool) -> None:
        if on:
            self.changed.emit()
