"""The settings' page about models on disk."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QWidget

from app.settings_presenters import SettingsView
from app.windows.page_layout import muted, stack
from app.words import size
from engine.localapi.settings import KeptModelInfo


class ModelsPart(QWidget):
    """The models on disk.

    Signals:
        delete_wanted: The name of one.
    """

    delete_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._models: tuple[KeptModelInfo, ...] | None = None
        self._title = QLabel(self.tr("On this computer"))
        self._title.setObjectName("title")
        self._folder = muted("")
        self._grid = QGridLayout()
        self._grid.setColumnStretch(0, 1)
        stack(self, self._title, self._folder, self._grid)

    def show_view(self, view: SettingsView) -> None:
        """Draw `view`."""
        self._folder.setText(view.folder)
        if view.models == self._models:
            return
        self._models = view.models
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for at, model in enumerate(view.models):
            button = QPushButton(self.tr("Delete"))
            button.setAccessibleName(self.tr("Delete {model}").format(model=model.name))
            button.setEnabled(not model.in_use)
            button.clicked.connect(lambda _=False, at=at: self._on_delete(at))
            words = QLabel(size(model.num_bytes, self.tr))
            words.setObjectName("hint")
            name = QLabel(
                self.tr("{model} (runs now)").format(model=model.name)
                if model.in_use
                else model.name,
                wordWrap=True,
            )
            self._grid.addWidget(name, at, 0)
            self._grid.addWidget(words, at, 1)
            self._grid.addWidget(button, at, 2)

    def _on_delete(self, at: int) -> None:
        """The first click asks, the second deletes: it can be fetched again, but not at once."""
        item = self._grid.itemAtPosition(at, 2)
        button = None if item is None else item.widget()
        assert isinstance(button, QPushButton)
        assert self._models is not None
        if button.objectName() == "primary":
            button.setEnabled(False)
            self.delete_wanted.emit(self._models[at].name)
            return
        button.setObjectName("primary")
        button.setText(self.tr("Really delete"))
        button.style().polish(button)
