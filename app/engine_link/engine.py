"""The engine itself: its states as they change, and orders to it.

The event stream is also our lease on an engine that was started for us: it stays open as long as we
live.
"""

from __future__ import annotations

from contextlib import suppress

from pydantic import ValidationError
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QNetworkReply

from app.engine_link.api import CALL_LIMIT_S, Api, failure_text, status_code
from app.messages import (
    Command,
    CommandDone,
    CommandFailed,
    CommandSent,
    ConnectionLost,
    Message,
    StatusArrived,
)
from app.sse import EventReader
from engine.localapi.schema import EngineEvent, EngineStatus, PauseRequest, ReadyFile

RETRY_DELAYS_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Waits between attempts to open the event stream; the last one repeats."""
SILENCE_LIMIT_S = 45.0
"""An event stream that has not even pinged for this long is dead, after a sleep for example."""


class EngineLink(QObject):
    """One connection to one engine.

    Signals:
        message: An `app.messages.Message` for the store.
        quit_accepted: The engine has agreed to end.
    """

    message = Signal(object)
    quit_accepted = Signal()

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self._events: QNetworkReply | None = None
        self._reader = EventReader()
        self._failures = 0
        self._retry = QTimer(self, singleShot=True)
        self._retry.timeout.connect(self._open_events)

    def open(self, engine: ReadyFile) -> None:
        """Follow `engine` from now on, through every reconnection."""
        self.close()
        self._api.engine = engine
        self._failures = 0
        self._open_events()

    def close(self) -> None:
        """Give up the lease."""
        self._retry.stop()
        self._api.engine = None
        events, self._events = self._events, None
        if events is not None:
            events.abort()
            events.deleteLater()

    def pause(self, request: PauseRequest) -> None:
        """Pause as `request` says."""
        command = Command.FINISH if request.finish_first else Command.PAUSE
        self._command(command, "pause", request.model_dump_json(exclude_defaults=True))

    def resume(self) -> None:
        """Serve again."""
        self._command(Command.RESUME, "resume", "{}")

    def quit_engine(self) -> bool:
        """Ask the engine to end; False when there is no connection to ask over."""
        if self._events is None:
            return False
        reply = self._api.send("POST", "/shoal/v1/quit", "{}")
        if reply is None:
            return False
        reply.finished.connect(reply.deleteLater)
        reply.finished.connect(self.quit_accepted)
        return True

    def _send(self, message: Message) -> None:
        self.message.emit(message)

    def _command(self, command: Command, path: str, body: str) -> None:
        reply = self._api.send("POST", f"/shoal/v1/{path}", body, limit_s=CALL_LIMIT_S)
        if reply is None:
            self._send(CommandFailed(self.tr("The engine is not ready yet.")))
            return
        self._send(CommandSent(command))
        reply.finished.connect(lambda: self._on_command_answered(reply))

    def _on_command_answered(self, reply: QNetworkReply) -> None:
        reply.deleteLater()
        body = bytes(reply.readAll().data())
        if reply.error() is not QNetworkReply.NetworkError.NoError:
            self._send(CommandFailed(failure_text(reply, body, self.tr)))
            return
        with suppress(ValidationError):  # another version's answer; the event stream tells anyway
            self._send(StatusArrived(EngineStatus.model_validate_json(body)))
        self._send(CommandDone())

    def _open_events(self) -> None:
        reply = self._api.send("GET", "/shoal/v1/events?lease=1", limit_s=SILENCE_LIMIT_S)
        if reply is None:
            self._on_events_lost(self.tr("The engine's access token cannot be read."))
            return
        self._reader = EventReader()
        self._events = reply
        reply.readyRead.connect(lambda: self._on_events(reply))
        reply.finished.connect(lambda: self._on_events_finished(reply))

    def _on_events(self, reply: QNetworkReply) -> None:
        if reply is not self._events or status_code(reply) != 200:
            return
        for data in self._reader.feed(bytes(reply.readAll().data())):
            try:
                event = EngineEvent.model_validate_json(data)
            except ValidationError:
                continue  # a kind of event that a newer engine knows and we do not
            self._failures = 0
            if event.status is not None:
                self._send(StatusArrived(event.status))

    def _on_events_finished(self, reply: QNetworkReply) -> None:
        reply.deleteLater()
        if reply is self._events:
            self._events = None
            self._on_events_lost(failure_text(reply, bytes(reply.readAll().data()), self.tr))

    def _on_events_lost(self, reason: str) -> None:
        delay_s = RETRY_DELAYS_S[min(self._failures, len(RETRY_DELAYS_S) - 1)]
        self._failures += 1
        self._retry.start(int(delay_s * 1000))
        self._send(ConnectionLost(reason))
