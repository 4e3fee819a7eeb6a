"""What happens when somebody looks at the dashboard."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

from app.batch_state import Batches
from app.chat_state import Chats
from app.dashboard_presenters import dashboard_view
from app.engine_link.past import PastLink
from app.past_messages import ArchiveTold, RangeChosen
from app.past_presenters import past_view
from app.presenters import overview
from app.settings import Settings
from app.state import AppState
from app.store import Store
from app.windows.dashboard import DashboardWindow
from engine.localapi.running import Home
from engine.localapi.statistics import Range

FOLLOW_EVERY_S = 5.0
"""How often what is looked at is asked for again; the engine takes a sample every ten seconds."""
_NO_BATCHES = Batches()
_NO_CHATS = Chats()


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

    def __init__(
        self,
        store: Store,
        link: PastLink,
        home: Home,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._link = link
        self._home = home
        self._settings = settings
        self._drawn: tuple[AppState, datetime] | None = None
        self.window: DashboardWindow | None = None
        link.message.connect(store.dispatch)
        self._follow = QTimer(self, interval=int(FOLLOW_EVERY_S * 1000))
        self._follow.timeout.connect(self._ask)

    def bring_up(self) -> None:
        """Show the window before all others."""
        if self.window is None:
            self.window = self._build()
        self._show(self.window, self._store.state, datetime.now().astimezone())
        self.window.bring_up()
        self._ask()
        self._follow.start()

    def draw(self, state: AppState, now: datetime) -> None:
        """Draw the window, if anybody sees it."""
        if self.window is not None and self.window.isVisible():
            self._show(self.window, state, now)

    def _show(self, window: DashboardWindow, state: AppState, now: datetime) -> None:
        """Draw, unless all that has changed is a chat or a batch, whose changes come many times a second."""
        rest = replace(state, chats=_NO_CHATS, batches=_NO_BATCHES)
        drawn = rest, now.replace(second=0, microsecond=0)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        over = overview(state, now, self.tr)
        window.show_view(over, dashboard_view(state, over, self.tr), past_view(state, now, self.tr))

    def _ask(self) -> None:
        """Ask for what the page that is open shows."""
        window = self.window
        if window is None or not window.isVisible():
            self._follow.stop()
            return
        if not self._store.state.linked:
            return  # what is missing is told by the head of the window
        page = window.tabs.currentWidget()
        if page is window.log:
            self._link.log()
        elif page is window.diagnostics:
            if self._store.state.past.preview is None:
                self._link.preview()
        else:
            self._link.statistics(self._store.state.past.range)

    def _on_page(self) -> None:
        window = self.window
        if window is not None and window.tabs.currentWidget() is window.diagnostics:
            self._store.dispatch(ArchiveTold(""))
            if self._store.state.linked:
                self._link.preview()  # once for each visit: the text shall not move while it is read
        else:
            self._ask()

    def _choose(self, span: Range) -> None:
        self._store.dispatch(RangeChosen(span))
        self._ask()

    def _save(self) -> None:
        dialog = QFileDialog(self.window, self.tr("Save the archive"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("zip")
        dialog.selectFile(f"shoal-diagnostics-{datetime.now().astimezone():%Y-%m-%d-%H%M}.zip")
        dialog.fileSelected.connect(
            lambda path: self._link.archive(lambda data: self._write(Path(path), data))
        )
        dialog.open()

    def _write(self, path: Path, data: bytes) -> None:
        try:
            path.write_bytes(data)
        except OSError as error:
            text = self.tr("{path} cannot be written ({reason}); choose another place.")
            self._store.dispatch(ArchiveTold(text.format(path=path, reason=error.strerror)))
            return
        self._store.dispatch(ArchiveTold(self.tr("Saved as {path}.").format(path=path)))

    def _build(self) -> DashboardWindow:
        folder = self._home.log_file.parent
        window = DashboardWindow(self._settings, folder)
        window.pause_wanted.connect(self.pause_wanted)
        window.resume_wanted.connect(self.resume_wanted)
        window.start_wanted.connect(self.start_wanted)
        window.closed.connect(self.closed)
        window.tabs.currentChanged.connect(lambda _index: self._on_page())
        window.activity.range_chosen.connect(self._choose)
        window.diagnostics.save_wanted.connect(self._save)
        window.log.folder_wanted.connect(
            lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
        )
        return window
