"""The settings' page about the app itself."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLabel, QWidget

from app.locales import LOCALES
from app.settings import Language, Theme
from app.windows.page_layout import muted, stack


class AppPart(QWidget):
    """The app's own settings, which hold at once.

    Signals:
        autostart_wanted: Whether to start at login.
        invites_wanted: Whether a click on an invite opens Shoal.
        stays_wanted: Whether to go on in the tray without windows.
        theme_wanted: A `Theme`.
        language_wanted: A `Language`.
    """

    autostart_wanted = Signal(bool)
    invites_wanted = Signal(bool)
    stays_wanted = Signal(bool)
    theme_wanted = Signal(object)
    language_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.autostart = QCheckBox(self.tr("Start Shoal when I &log in"))
        self.invites = QCheckBox(
            self.tr("Open &invites with Shoal: shoal:// links and .shoal files")
        )
        self.stays = QCheckBox(self.tr("Go on in the &tray when all windows are closed"))
        self.theme = QComboBox()
        self.theme.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.theme.setAccessibleName(self.tr("Colours"))
        for theme, words in (
            (Theme.SYSTEM, self.tr("as the desktop")),
            (Theme.LIGHT, self.tr("light")),
            (Theme.DARK, self.tr("dark")),
        ):
            self.theme.addItem(words, theme.value)
        self.language = QComboBox()
        self.language.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.language.setAccessibleName(self.tr("Language"))
        self.language.addItem(self.tr("as the system"), Language.SYSTEM.value)
        for code, habits in LOCALES.items():
            self.language.addItem(habits.name, code)
        self.note = muted("")
        self.note.hide()
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        for at, (words, editor) in enumerate(
            ((self.tr("Colou&rs"), self.theme), (self.tr("Lan&guage"), self.language))
        ):
            label = QLabel(words)
            label.setBuddy(editor)
            grid.addWidget(label, at, 0)
            grid.addWidget(editor, at, 1)
        grid.setColumnStretch(2, 1)
        stack(self, self.autostart, self.invites, self.stays, grid, self.note)
        self.autostart.clicked.connect(self.autostart_wanted)
        self.invites.clicked.connect(self.invites_wanted)
        self.stays.clicked.connect(self.stays_wanted)
        self.theme.activated.connect(
            lambda: self.theme_wanted.emit(Theme(self.theme.currentData()))
        )
        self.language.activated.connect(
            lambda: self.language_wanted.emit(Language(self.language.currentData()))
        )

    def show_choices(
        self,
        *,
        autostart: bool | None,
        invites: bool | None,
        stays: bool,
        theme: Theme,
        language: Language,
    ) -> None:
        """Show what holds; the first two are None where this system has no place for them."""
        self.invites.setVisible(invites is not None)
        self.invites.setChecked(bool(invites))
        self.autostart.setVisible(autostart is not None)
        self.autostart.setChecked(bool(autostart))
        self.stays.setChecked(stays)
        self.theme.setCurrentIndex(self.theme.findData(theme.value))
        self.language.setCurrentIndex(self.language.findData(language.value))

    def say(self, note: str) -> None:
        """Tell what a choice has led to; empty: nothing."""
        self.note.setText(note)
        self.note.setVisible(bool(note))
