"""Batches: the stream of their changes, pages of rows, and orders."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QNetworkReply

from app.batch_messages import (
    BatchMessage,
    JobAsked,
    JobCreated,
    JobDeleted,
    JobPreviewArrived,
    JobPreviewFailed,
    JobRefused,
    JobsArrived,
    JobSettled,
    JobsFollowed,
    JobsLost,
    JobUndo,
    JobUndone,
    PageWanted,
    PreviewAsked,
    ResultsSaved,
    RowsArrived,
    RowsFailed,
    TakeBack,
)
from app.engine_link.api import Api, failure_text, status_code
from app.engine_link.saving import Saving
from app.sse import EventReader
from engine.localapi.jobs import (
    JobChangeRequest,
    JobCreateRequest,
    JobEvent,
    JobInfo,
    JobPreview,
    JobPreviewRequest,
    JobRows,
    ResultFormat,
)

JOBS = "/shoal/v1/jobs"
RETRY_S = 5.0
SILENCE_LIMIT_S = 45.0
"""A stream that has not even pinged for this long is dead."""
ROW_CHARS = 200
"""Of prompt and answer in the table."""

Order = Literal["start", "pause", "resume", "cancel", "retry"]
_TAKE_BACK: Final[dict[str, TakeBack]] = {"cancel": "uncancel", "retry": "unretry"}


class BatchLink(QObject):
    """What the app asks of the engine about batches.

    Signals:
        message: An `app.batch_messages.BatchMessage` for the store.
    """

    message = Signal(object)

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self._events: QNetworkReply | None = None
        self._reader = EventReader()
        self._retry = QTimer(self, singleShot=True, interval=int(RETRY_S * 1000))
        self._retry.timeout.connect(self.follow)

    def follow(self) -> None:
        """Hear of every change from now on, through broken connections, until `let_go`."""
        self.let_go()
        reply = self._api.send("GET", f"{JOBS}/events", limit_s=SILENCE_LIMIT_S)
        if reply is None:
            self._retry.start()
            return
        self._events = reply
        self._reader = EventReader()
        reply.readyRead.connect(lambda: self._on_events(reply))
        reply.finished.connect(lambda: self._on_events_finished(reply))
        self._send(JobsFollowed())

    def let_go(self) -> None:
        """Hear of no changes."""
        self._retry.stop()
        events, self._events = self._events, None
        if events is not None:
            events.abort()

    def preview(self, wanted: JobPreviewRequest) -> None:
        """Ask for the first rows of an input."""
        self._send(PreviewAsked(wanted))
        self._api.call(
            "POST",
            f"{JOBS}/preview",
            wanted,
            lambda data: self._send(
                JobPreviewArrived(wanted, JobPreview.model_validate_json(data))
            ),
            lambda text: self._send(JobPreviewFailed(wanted, text)),
        )

    def create(self, wanted: JobCreateRequest) -> None:
        """Begin a batch; the engine checks its rows first."""
        self._send(JobAsked())
        self._api.call(
            "POST",
            JOBS,
            wanted,
            lambda data: self._send(JobCreated(JobInfo.model_validate_json(data))),
            self._refuse,
        )

    def order(self, job: str, order: Order) -> None:
        """Start, pause, resume, cancel or retry."""

        def settle(data: bytes) -> None:
            info = JobInfo.model_validate_json(data)
            back = _TAKE_BACK.get(order)
            undo = None if back is None else JobUndo(info.id, info.name, back)
            self._send(JobSettled(info, undo))

        self._send(JobAsked())
        self._api.call("POST", f"{JOBS}/{job}/{order}", None, settle, self._refuse)

    def take_back(self, undo: JobUndo) -> None:
        """Take back what was done to a batch."""
        self._send(JobAsked())
        self._api.call(
            "POST",
            f"{JOBS}/{undo.job}/{undo.order}",
            None,
            lambda data: self._send(JobUndone(JobInfo.model_validate_json(data))),
            self._refuse,
        )

    def change(self, job: str, wanted: JobChangeRequest) -> None:
        """Give a batch another priority or name."""
        self._send(JobAsked())
        self._api.call("POST", f"{JOBS}/{job}", wanted, self._settle, self._refuse)

    def delete(self, job: JobInfo) -> None:
        """Have the engine put a batch and its answers away; its results file stays."""
        undo = JobUndo(job.id, job.name, "restore")
        self._send(JobAsked())
        self._api.call(
            "DELETE",
            f"{JOBS}/{job.id}",
            None,
            lambda _data: self._send(JobDeleted(undo)),
            self._refuse,
        )

    def save(self, job: str, form: ResultFormat, file: Path) -> None:
        """Have the results of a batch so far in a file."""
        self._send(JobAsked())
        Saving(
            self._api,
            f"{JOBS}/{job}/results?format={form}",
            file,
            lambda: self._send(ResultsSaved()),
            self._refuse,
        )

    def rows(self, wanted: PageWanted, after: int, limit: int) -> None:
        """Ask for the rows that follow row `after`."""
        path = f"{JOBS}/{wanted.job}/rows?after={after}&limit={limit}&chars={ROW_CHARS}"
        if wanted.only_failed:
            path += "&state=failed"
        self._api.call(
            "GET",
            path,
            None,
            lambda data: self._send(RowsArrived(wanted, JobRows.model_validate_json(data))),
            lambda text: self._send(RowsFailed(wanted, text)),
        )

    def _send(self, message: BatchMessage) -> None:
        self.message.emit(message)

    def _settle(self, data: bytes) -> None:
        self._send(JobSettled(JobInfo.model_validate_json(data)))

    def _refuse(self, text: str) -> None:
        self._send(JobRefused(text))

    def _on_events(self, reply: QNetworkReply) -> None:
        if reply is not self._events or status_code(reply) != 200:
            return
        for data in self._reader.feed(bytes(reply.readAll().data())):
            try:
                event = JobEvent.model_validate_json(data)
            except ValidationError:
                continue  # a kind of event that a newer engine knows and we do not
            if event.kind == "jobs":
                self._send(JobsArrived(event.jobs, event.deleted))

    def _on_events_finished(self, reply: QNetworkReply) -> None:
        reply.deleteLater()
        if reply is self._events:
            self._events = None
            self._retry.start()
            body = bytes(reply.readAll().data())
            self._send(JobsLost(failure_text(reply, body, self.tr)))
