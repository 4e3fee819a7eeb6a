"""What happens when somebody looks at the dashboard."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import QObject, Signal

from app.dashboard_presenters import dashboard_view
from app.presenters import overview
from app.settings import Settings
from app.state import AppState
from app.store import Store
from app.windows.dashboard import DashboardWindow


class DashboardWiring(QObject):
    """The dashboard, built when it is first wanted.

    Signals:
        pause_wanted: Pause, as this `PauseRequest` says.
        resume_wanted: End the pause.
        start_wanted: Start the engine again.
        closed: The window was closed.
    """

    pause_wanted = Signal(object)
    resume_wanted = Signal()
    start_wanted = Signal()
    closed = Signal()

    def __init__(self, store: Store, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._settings = settings
        self.window: DashboardWindow | None = None

    def bring_up(self) -> None:
        """Show the window before all others."""
        if self.window is None:
            self.window = self._build()
        self._show(self.window, self._store.state, datetime.now().astimezone())
        self.window.bring_up()

    def draw(self, state: AppState, now: datetime) -> None:
        """Draw the window, if anybody sees it."""
        if self.window is not None and self.window.isVisible():
            self._show(self.window, state, now)

    def _show(self, window: DashboardWindow, state: AppState, now: datetime) -> None:
        over = overview(state, now, self.tr)
        window.show_view(over, dashboard_view(state, over, self.tr))

    def _build(self) -> DashboardWindow:
        window = DashboardWindow(self._settings)
        window.pause_wanted.connect(self.pause_wanted)
        window.resume_wanted.connect(self.resume_wanted)
        window.start_wanted.connect(self.start_wanted)
        window.closed.connect(self.closed)
        return window
