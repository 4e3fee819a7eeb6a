"""The settings: limits, rules, models, swarm, the app itself, the API and the identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.settings_presenters import SettingsView
from app.windows.card import CardFrame
from app.windows.looks import Looks
from app.windows.page_layout import (
    PAGE_LEFT_PX,
    PAGE_RIGHT_PX,
    framed,
    heading,
    muted,
    scrolling_page,
)
from app.windows.setting_editor import SettingEditor
from app.windows.settings_api import ApiPart
from app.windows.settings_app import AppPart
from app.windows.settings_identity import IdentityPart
from app.windows.settings_models import ModelsPart
from app.windows.settings_swarm import SwarmPart
from app.windows.settings_update import UpdatePart
from app.windows.top_window import TopWindow

SIZE_PX = (820, 640)
PREVIEW_AFTER_MS = 200
"""What would be held is asked for when the editing rests."""
LIST_WIDTH_PX = 170
"""At least; a longer title takes more."""
LIST_PADDING_PX = 30
LIMITS, RULES, MODELS, SWARM, APP, API, IDENTITY = range(7)
_ROWS_OF = {LIMITS: 0, RULES: 1, MODELS: 2, API: 3}


class SettingsWindow(TopWindow):
    """Shows what the engine has; what the person changes is applied together, or taken back.

    Signals:
        apply_wanted: Settings by name, as they shall be.
        preview_wanted: The same, while they are edited.
        closed: The window was closed.
    """

    apply_wanted = Signal(object)
    preview_wanted = Signal(object)

    def __init__(self, view: SettingsView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view: SettingsView | None = None
        self._known: Mapping[str, Any] = {}
        self.setWindowTitle(self.tr("Shoal settings"))
        self.resize(*SIZE_PX)
        self.editors = {row.name: SettingEditor(row) for page in view.pages for row in page}
        self.card = CardFrame()
        self.swarm, self.app, self.api = SwarmPart(), AppPart(), ApiPart()
        self.models, self.identity = ModelsPart(), IdentityPart()
        self.update_part = UpdatePart()
        self.list = QListWidget()
        self.list.setObjectName("pages")
        self.list.setAccessibleName(self.tr("Pages of the settings"))
        self._pages = QStackedWidget()
        for title, about, parts in self._contents(view):
            self.list.addItem(title)
            self._pages.addWidget(
                scrolling_page(heading(title), *([muted(about)] if about else []), *parts)
            )
        self._error, self._note = QLabel(wordWrap=True), QLabel(wordWrap=True)
        self._note.setObjectName("hint")
        self._error_frame = framed("failure", self._error)
        self._effect = QLabel(wordWrap=True)
        self._effect.setObjectName("hint")
        self.apply = QPushButton(self.tr("&Apply"))
        self.apply.setObjectName("primary")
        self.revert = QPushButton(self.tr("&Take back"))
        self._lay_out()
        self.list.currentRowChanged.connect(self._on_page)
        self._ask_later = QTimer(self, singleShot=True, interval=PREVIEW_AFTER_MS)
        self._ask_later.timeout.connect(lambda: self.preview_wanted.emit(self.changed))
        for editor in self.editors.values():
            editor.edited.connect(self._on_edited)
        self.apply.clicked.connect(lambda: self.apply_wanted.emit(self.changed))
        self.revert.clicked.connect(self._show_values)
        self.dress()
        self.open_page(LIMITS)
        self.show_view(view)

    @property
    def changed(self) -> dict[str, Any]:
        """What the person has changed and not applied yet."""
        return {name: e.value for name, e in self.editors.items() if e.is_changed}

    def open_page(self, page: int) -> None:
        """Show one of the pages."""
        self.list.setCurrentRow(page)
        self.list.setFocus()

    def show_view(self, view: SettingsView) -> None:
        """Draw `view`; what the person is editing stays."""
        self._view = view
        for page in view.pages:
            for row in page:
                self.editors[row.name].offer(row.choices)
        if view.values != self._known:
            self._known = view.values
            self._show_values()
        self.card.show_card(view.card)
        self.swarm.show_view(view)
        self.api.show_view(view)
        self.models.show_view(view)
        self.identity.show_view(view)
        self.update_part.show_view(view.update)
        self._error.setText(view.error)
        self._error_frame.setAccessibleName(view.error)
        self._error_frame.setVisible(bool(view.error))
        self._note.setText(view.note)
        self._note.setVisible(bool(view.note))
        self._draw_buttons()

    def take_colours(self, colours: Looks) -> None:
        """The letters may be others, too."""
        super().take_colours(colours)
        self._fit_list()

    def _fit_list(self) -> None:
        """Make the list as wide as its longest title."""
        titles = (self.list.item(at).text() for at in range(self.list.count()))
        longest = max(map(self.list.fontMetrics().horizontalAdvance, titles), default=0)
        self.list.setFixedWidth(max(LIST_WIDTH_PX, longest + LIST_PADDING_PX))

    def _contents(self, view: SettingsView) -> list[tuple[str, str, list[QWidget]]]:
        """(Title, what it is about, parts) of each page."""
        rows: dict[int, list[QWidget]] = {
            page: [self.editors[row.name] for row in view.pages[at]]
            for page, at in _ROWS_OF.items()
        }
        return [
            (
                self.tr("Limits"),
                self.tr("What Shoal may take of this computer at most."),
                [self.card, *rows[LIMITS]],
            ),
            (
                self.tr("Your work first"),
                self.tr("When Shoal gives to its swarm, and when it steps aside."),
                rows[RULES],
            ),
            (self.tr("Models"), "", [*rows[MODELS], self.models]),
            (self.tr("Swarm"), "", [self.swarm]),
            (self.tr("This app"), "", [self.app, self.update_part]),
            (
                self.tr("Other programs"),
                self.tr("Programs that know OpenAI's API can use this engine."),
                [*rows[API], self.api],
            ),
            (
                self.tr("Identity"),
                self.tr(
                    "A key tells your node from others. Keep a copy, to be the same node on "
                    "another computer; whoever has the copy and its passphrase can pose as you."
                ),
                [self.identity],
            ),
        ]

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._effect, 1)
        buttons.addWidget(self.revert)
        buttons.addWidget(self.apply)
        foot = QVBoxLayout()
        foot.setContentsMargins(PAGE_LEFT_PX, 0, PAGE_RIGHT_PX, 0)
        foot.setSpacing(12)
        foot.addWidget(self._error_frame)
        foot.addWidget(self._note)
        foot.addLayout(buttons)
        right = QVBoxLayout()
        right.setSpacing(12)
        right.addWidget(self._pages, 1)
        right.addLayout(foot)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(14, 18, 20, 16)
        whole.setSpacing(18)
        whole.addWidget(self.list)
        whole.addLayout(right, 1)

    def _on_edited(self) -> None:
        self._draw_buttons()
        self._ask_later.start()

    def _on_page(self, page: int) -> None:
        self._pages.setCurrentIndex(page)
        self._draw_buttons()

    def _show_values(self) -> None:
        view = self._view
        if view is None:
            return
        for name, editor in self.editors.items():
            if name in view.values:
                editor.show_value(view.values[name], is_settled=name in view.overridden)
            else:
                editor.setEnabled(False)
        self._draw_buttons()
        self._ask_later.start()

    def _draw_buttons(self) -> None:
        changed, view = self.changed, self._view
        busy = view is not None and view.changing
        has_rows = self._pages.currentIndex() in _ROWS_OF
        for button in (self.apply, self.revert):
            button.setEnabled(bool(changed) and not busy)
            button.setVisible(has_rows or bool(changed))
        begins_again = view is not None and not changed.keys().isdisjoint(view.rejoining)
        self._effect.setText(
            self.tr("Applying…")
            if busy
            else self.tr("To apply this, the stage starts again, which takes seconds.")
            if begins_again
            else ""
        )
