"""New versions of Shoal, on the settings' page about the app itself."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QLabel, QLineEdit, QPushButton, QWidget

from app.presenters import Action
from app.update_presenters import UpdateView
from app.windows.page_layout import framed, muted, row, stack


class UpdatePart(QWidget):
    """Which version this is, whether there is a newer one, and how to get it.

    Signals:
        check_wanted: Look now.
        install_wanted: Fetch it and put it beside this one.
        restart_wanted: Switch to it.
        setup_wanted: Start the setup that is at this path.
        looking_wanted: Whether the engine shall look once a day.
    """

    check_wanted = Signal()
    install_wanted = Signal()
    restart_wanted = Signal()
    setup_wanted = Signal(str)
    looking_wanted = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._running = QLabel()
        self._running.setObjectName("welcome")
        self._text = muted("")
        self.command = QLineEdit(readOnly=True)
        self.command.setAccessibleName(self.tr("Command that installs the new version"))
        self.copy = QPushButton(self.tr("Copy the &command"))
        self._problem = QLabel(wordWrap=True)
        self._problem_frame = framed("failure", self._problem)
        self.check, self.install = QPushButton(), QPushButton()
        self.restart, self.open = QPushButton(), QPushButton()
        for button in (self.install, self.restart, self.open):
            button.setObjectName("primary")
        self.looks = QCheckBox(self.tr("Look for a new version once a &day"))
        stack(
            self, self._running, self._text, self.command, self._problem_frame,
            row(self.copy, self.install, self.restart, self.open, self.check), self.looks,
        )  # fmt: skip
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.command.text()))
        self.open.clicked.connect(lambda: self.setup_wanted.emit(self.command.text()))
        self.check.clicked.connect(self.check_wanted)
        self.install.clicked.connect(self.install_wanted)
        self.restart.clicked.connect(self.restart_wanted)
        self.looks.clicked.connect(self.looking_wanted)

    def show_view(self, view: UpdateView) -> None:
        """Draw `view`."""
        self.setVisible(bool(view.running))
        self._running.setText(view.running)
        self._text.setText(view.text)
        self._text.setVisible(bool(view.text))
        self.command.setText(view.command)
        for widget in (self.command, self.copy):
            widget.setVisible(bool(view.command) and not view.open.visible)
        self._problem.setText(view.problem)
        self._problem_frame.setAccessibleName(view.problem)
        self._problem_frame.setVisible(bool(view.problem))
        for button, action in (
            (self.check, view.check),
            (self.install, view.install),
            (self.restart, view.restart),
            (self.open, view.open),
        ):
            _draw(button, action)
        self.looks.setVisible(view.looks is not None)
        self.looks.setChecked(bool(view.looks))


def _draw(button: QPushButton, action: Action) -> None:
    if button.text() != action.label:
        button.setText(action.label)
    button.setVisible(action.visible)
    button.setEnabled(action.enabled)
