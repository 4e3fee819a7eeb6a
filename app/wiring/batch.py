"""What happens when somebody looks at batches, and when one ends."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

from app.batch_messages import (
    FailedWanted,
    JobChosen,
    JobUndoExpired,
    NewsRead,
    PageWanted,
    PreviewAsked,
)
from app.batch_presenters import batch_view, news_words
from app.batch_state import PAGE_ROWS, Batches, after_row
from app.engine_link.batches import BatchLink
from app.settings import Settings
from app.state import AppState
from app.store import Store
from app.windows.batch import BatchWindow
from app.windows.batch_files import proposed_name
from engine.localapi.jobs import JobChangeRequest, JobCreateRequest, JobInfo, JobPreviewRequest

UNDO_S = 12.0
"""How long the window offers to take an order back."""


class BatchWiring(QObject):
    """The window of batches, built when it is first wanted; changes are always followed.

    Signals:
        notice: A batch has ended: a sentence for the tray.
        closed: The window was closed.
    """

    notice = Signal(str)
    closed = Signal()

    def __init__(
        self, store: Store, link: BatchLink, settings: Settings, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._link = link
        self._settings = settings
        self._linked = False
        self._news = store.state.batches.news
        self._drawn: tuple[Batches, bool, int] | None = None
        self._creates = False
        self._undo = store.state.batches.undo
        self.undo_ends = QTimer(self, singleShot=True, interval=int(UNDO_S * 1000))
        self.undo_ends.timeout.connect(lambda: store.dispatch(JobUndoExpired()))
        self.window: BatchWindow | None = None
        link.message.connect(store.dispatch)
        store.changed.connect(self._on_changed)

    def bring_up(self) -> None:
        """Show the window before all others."""
        if self.window is None:
            self.window = self._build()
        self._drawn = None
        self._show(self.window, self._store.state, datetime.now().astimezone())
        self.window.bring_up()

    def draw(self, state: AppState, now: datetime) -> None:
        """Draw the window, if anybody sees it."""
        if self.window is not None and self.window.isVisible():
            self._show(self.window, state, now)

    def _show(self, window: BatchWindow, state: AppState, now: datetime) -> None:
        """Draw, unless only something else has changed."""
        drawn = state.batches, state.linked, now.toordinal()
        if drawn != self._drawn:
            self._drawn = drawn
            window.show_view(batch_view(state, now, self.tr))

    def _on_changed(self, state: AppState) -> None:
        if state.linked != self._linked:
            self._linked = state.linked
            if state.linked:
                self._link.follow()
            else:
                self._link.let_go()
        if state.batches.news != self._news:
            self._news = state.batches.news
            if self._news is not None and not self._is_seen(self._news.id):
                self.notice.emit(news_words(self._news, self.tr))
        if state.batches.undo != self._undo:
            self._undo = state.batches.undo
            self.undo_ends.start()
        if self._creates and not state.batches.busy:
            self._creates = False
            if not state.batches.refusal and self.window is not None:
                self.window.form.clear()

    def _is_seen(self, job: str) -> bool:
        """Whether the person looks at this batch just now."""
        window = self.window
        looks = window is not None and window.isActiveWindow() and not window.isMinimized()
        return looks and self._store.state.batches.chosen == job

    def _preview(self, wanted: JobPreviewRequest | None) -> None:
        if wanted is None:
            self._store.dispatch(PreviewAsked(None))
        else:
            self._link.preview(wanted)

    def _create(self, wanted: JobCreateRequest) -> None:
        self._creates = True
        self._link.create(wanted)

    def _ask_rows(self, wanted: PageWanted) -> None:
        after = after_row(self._store.state.batches, wanted.page)
        if after is not None:
            self._link.rows(wanted, after, PAGE_ROWS)

    def _job(self, job_id: str) -> JobInfo | None:
        return next((job for job in self._store.state.batches.jobs if job.id == job_id), None)

    def _delete(self, job_id: str) -> None:
        if (job := self._job(job_id)) is not None:
            self._link.delete(job)

    def _take_back(self) -> None:
        batches = self._store.state.batches
        if batches.undo is not None and not batches.busy:
            self._link.take_back(batches.undo)

    def _save(self, job_id: str) -> None:
        """Ask for a file; its ending, or else the kind that was chosen, tells the form."""
        if (job := self._job(job_id)) is None:
            return
        lines, table = self.tr("Lines of JSON (*.jsonl)"), self.tr("Table (*.csv)")
        dialog = QFileDialog(self.window, self.tr("Save the results"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([lines, table])
        dialog.setDefaultSuffix("jsonl")
        dialog.filterSelected.connect(
            lambda kind: dialog.setDefaultSuffix("csv" if kind == table else "jsonl")
        )
        dialog.selectFile(proposed_name(job.input_name))
        dialog.fileSelected.connect(
            lambda path: self._link.save(
                job_id, "csv" if path.lower().endswith(".csv") else "jsonl", Path(path)
            )
        )
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _build(self) -> BatchWindow:
        window = BatchWindow(self._settings)
        window.chosen.connect(lambda job: self._store.dispatch(JobChosen(job)))
        window.news_read.connect(lambda: self._store.dispatch(NewsRead()))
        window.closed.connect(self.closed)
        window.form.preview_wanted.connect(self._preview)
        window.form.create_wanted.connect(self._create)
        page = window.page
        page.ordered.connect(self._link.order)
        page.delete_wanted.connect(self._delete)
        page.save_wanted.connect(self._save)
        window.undo_wanted.connect(self._take_back)
        page.priority_wanted.connect(
            lambda job, value: self._link.change(job, JobChangeRequest(priority=value))
        )
        page.failed_wanted.connect(lambda only: self._store.dispatch(FailedWanted(only)))
        page.folder_wanted.connect(
            lambda path: QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(path).parent)))
        )
        page.model.wanted.connect(self._ask_rows)
        return window
