"""What happens during the first steps, and when an invite is opened."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import QObject, Signal

from app.engine_link.setup import SetupLink
from app.presenters import overview
from app.setup_messages import InviteGiven
from app.setup_presenters import Caps, first_run_view, values_of
from app.state import AppState
from app.store import Store
from app.windows.first_run import FirstRunWindow
from app.windows.swarm_choice import Choice, Way


class SetupWiring(QObject):
    """The window of the first steps; it opens by itself, once, when nothing is set up yet.

    Signals:
        chat_wanted: Open the chat.
        closed: The window was closed.
    """

    chat_wanted = Signal()
    closed = Signal()

    def __init__(self, store: Store, link: SetupLink, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._link = link
        self.window: FirstRunWindow | None = None
        link.message.connect(store.dispatch)
        store.changed.connect(self._on_changed)

    @property
    def is_wanted(self) -> bool:
        """Whether a person has to choose before anything else makes sense."""
        state = self._store.state
        return state.linked and state.status is not None and state.status.awaits_setup

    def bring_up(self) -> None:
        """Show the first steps."""
        if self.window is None:
            window = self.window = FirstRunWindow()
            window.measure_wanted.connect(lambda: self._link.measure(quick=True))
            window.caps_chosen.connect(self._preview)
            window.begin_wanted.connect(self._begin)
            window.chat_wanted.connect(self.chat_wanted)
            window.closed.connect(self._on_closed)
            window.folder.changed.connect(lambda: self._draw(self._store.state))
            self._link.look_at_machine()
            self._link.look_at_models()
        self._draw(self._store.state)
        self.window.bring_up()

    def _on_changed(self, state: AppState) -> None:
        if self.is_wanted and self.window is None and not state.quitting:
            self.bring_up()
        elif self.window is not None and self.window.isVisible():
            self._draw(state)

    def _draw(self, state: AppState) -> None:
        assert self.window is not None
        if state.setup.invite and self.is_wanted:
            self.window.swarm.take_invite(state.setup.invite)
            self._store.dispatch(InviteGiven(""))
        headline = overview(state, datetime.now().astimezone(), self.tr).headline
        status = state.status if state.linked else None
        self.window.show_view(
            first_run_view(
                state.setup, status, self.window.caps, headline, self.tr, self.window.folder.folder
            )
        )

    def _preview(self, caps: Caps) -> None:
        known = self._store.state.setup.preview
        self._link.preview({} if known is None else values_of(caps, known))
        self._draw(self._store.state)

    def _begin(self, choice: Choice) -> None:
        assert self.window is not None
        known = self._store.state.setup.preview
        caps = {} if known is None else values_of(self.window.caps, known)
        values = {name: value for name, value in caps.items() if value is not None}
        if self.window.folder.folder:
            values["model.folder"] = self.window.folder.folder
        if choice.way is Way.CREATE:
            self._link.create_swarm(choice.name, private=choice.private, values=values)
        elif choice.way is Way.JOIN:
            self._link.join_swarm(choice.invite, values)
        else:
            self._link.begin_alone(values)

    def _on_closed(self) -> None:
        self._link.stop_measuring()
        self.closed.emit()
