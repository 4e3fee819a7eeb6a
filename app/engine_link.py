"""The engine's local API as messages and orders; the only file that knows HTTP.

Nothing here blocks: Qt's network access works on the event loop, and every answer arrives as a
message for the store. The event stream is also our lease on an engine that was started for us: it
stays open as long as we live.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError
from PySide6.QtCore import QByteArray, QObject, QTimer, QUrl, Signal
from PySide6.QtNetwork import (
    QNetworkAccessManager,
    QNetworkProxy,
    QNetworkReply,
    QNetworkRequest,
)

from app.messages import (
    ChatEnded,
    ChatFailed,
    ChatStarted,
    ChatToken,
    Command,
    CommandDone,
    CommandFailed,
    CommandSent,
    ConnectionLost,
    Ending,
    Message,
    StatusArrived,
)
from app.sse import EventReader
from app.state import Turn
from engine.core.clock import Clock
from engine.localapi.running import read_token
from engine.localapi.schema import (
    ApiError,
    EngineEvent,
    EngineStatus,
    PauseRequest,
    ReadyFile,
)

RETRY_DELAYS_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Waits between attempts to open the event stream; the last one repeats."""
SILENCE_LIMIT_S = 45.0
"""An event stream that has not even pinged for this long is dead, after a sleep for example."""
COMMAND_LIMIT_S = 30.0


class EngineLink(QObject):
    """One connection to one engine.

    Signals:
        message: An `app.state.Message` for the store.
        quit_accepted: The engine has agreed to end.
    """

    message = Signal(object)
    quit_accepted = Signal()

    def __init__(self, clock: Clock, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._clock = clock
        self._http = QNetworkAccessManager(self)
        # The engine is on loopback: a proxy from the environment could not reach it.
        self._http.setProxy(QNetworkProxy(QNetworkProxy.ProxyType.NoProxy))
        self._engine: ReadyFile | None = None
        self._events: QNetworkReply | None = None
        self._reader = EventReader()
        self._failures = 0
        self._retry = QTimer(self, singleShot=True)
        self._retry.timeout.connect(self._open_events)
        self._chat: _ChatStream | None = None

    def open(self, engine: ReadyFile) -> None:
        """Follow `engine` from now on, through every reconnection."""
        self.close()
        self._engine = engine
        self._failures = 0
        self._open_events()

    def close(self) -> None:
        """Give up the lease and any answer under way."""
        self._retry.stop()
        self._engine = None
        if self._chat is not None:
            self._chat.abort(Ending.FAILED)
        events, self._events = self._events, None
        if events is not None:
            events.abort()
            events.deleteLater()

    def pause(self, request: PauseRequest) -> None:
        """Pause, as `request` says."""
        command = Command.FINISH if request.finish_first else Command.PAUSE
        self._command(command, "pause", request.model_dump_json())

    def resume(self) -> None:
        """Serve again."""
        self._command(Command.RESUME, "resume", "")

    def quit_engine(self) -> bool:
        """Ask the engine to end; False when there is no connection to ask over."""
        request = self._request("/shoal/v1/quit")
        if request is None or self._events is None:
            return False
        reply = self._http.post(request, QByteArray(b"{}"))
        reply.finished.connect(reply.deleteLater)
        reply.finished.connect(self.quit_accepted)
        return True

    def ask(self, turns: Sequence[Turn]) -> None:
        """Ask for the answer to `turns`; it arrives as `ChatToken`s and one end."""
        request = self._request("/v1/chat/completions")
        if request is None:
            self._send(ChatFailed(self.tr("The engine is not ready yet. Try again in a moment.")))
            return
        body = {
            "model": "default",  # whichever the engine serves
            "messages": [{"role": turn.role.value, "content": turn.text} for turn in turns],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        reply = self._http.post(request, QByteArray(json.dumps(body).encode()))
        self._chat = _ChatStream(reply, self._clock, self._send, self)

    def stop(self) -> None:
        """End the answer under way; closing its connection frees the session at once."""
        if self._chat is not None:
            self._chat.abort(Ending.STOPPED)

    def _send(self, message: Message) -> None:
        self.message.emit(message)

    def _request(self, path: str) -> QNetworkRequest | None:
        """A request with the present token: another engine may have written a new one."""
        if self._engine is None:
            return None
        try:
            token = read_token(Path(self._engine.token_file))
        except OSError:
            return None
        request = QNetworkRequest(QUrl(self._engine.url.rstrip("/") + path))
        request.setRawHeader(b"Authorization", f"Bearer {token}".encode())
        request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
        return request

    def _command(self, command: Command, path: str, body: str) -> None:
        request = self._request(f"/shoal/v1/{path}")
        if request is None:
            self._send(CommandFailed(self.tr("The engine is not ready yet.")))
            return
        self._send(CommandSent(command))
        request.setTransferTimeout(int(COMMAND_LIMIT_S * 1000))
        reply = self._http.post(request, QByteArray(body.encode()))
        reply.finished.connect(lambda: self._on_command_answered(reply))

    def _on_command_answered(self, reply: QNetworkReply) -> None:
        reply.deleteLater()
        body = bytes(reply.readAll().data())
        if reply.error() is not QNetworkReply.NetworkError.NoError:
            self._send(CommandFailed(_failure_text(reply, body, self.tr)))
            return
        with suppress(ValidationError):  # another version's answer; the event stream tells anyway
            self._send(StatusArrived(EngineStatus.model_validate_json(body)))
        self._send(CommandDone())

    def _open_events(self) -> None:
        request = self._request("/shoal/v1/events?lease=1")
        if request is None:
            self._on_events_lost(self.tr("The engine's access token cannot be read."))
            return
        request.setTransferTimeout(int(SILENCE_LIMIT_S * 1000))
        self._reader = EventReader()
        reply = self._http.get(request)
        self._events = reply
        reply.readyRead.connect(lambda: self._on_events(reply))
        reply.finished.connect(lambda: self._on_events_finished(reply))

    def _on_events(self, reply: QNetworkReply) -> None:
        if reply is not self._events or _status_code(reply) != 200:
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
            self._on_events_lost(_failure_text(reply, bytes(reply.readAll().data()), self.tr))

    def _on_events_lost(self, reason: str) -> None:
        delay_s = RETRY_DELAYS_S[min(self._failures, len(RETRY_DELAYS_S) - 1)]
        self._failures += 1
        self._retry.start(int(delay_s * 1000))
        self._send(ConnectionLost(reason))


class _ChatStream(QObject):
    """One answer, from request to end; sends exactly one `ChatEnded` or `ChatFailed`."""

    def __init__(
        self,
        reply: QNetworkReply,
        clock: Clock,
        send: Callable[[Message], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._reply = reply
        self._clock = clock
        self._send = send
        self._reader = EventReader()
        self._started = False
        self._over = False
        self._ending: Ending | None = None
        self._tokens: int | None = None
        reply.readyRead.connect(self._on_data)
        reply.finished.connect(self._on_finished)

    def abort(self, ending: Ending) -> None:
        """Close the connection; what has arrived stays."""
        if self._over:
            return
        if ending is Ending.STOPPED:
            self._end(ChatEnded(Ending.STOPPED))
        else:
            self._end(ChatFailed(self.tr("The engine has ended. Try again when it is back.")))
        self._reply.abort()

    def _end(self, message: Message) -> None:
        if not self._over:
            self._over = True
            self._send(message)

    def _on_data(self) -> None:
        if self._over or _status_code(self._reply) != 200:
            return
        if not self._started:
            self._started = True
            self._send(ChatStarted())
        for data in self._reader.feed(bytes(self._reply.readAll().data())):
            if data == "[DONE]":
                self._end(ChatEnded(self._ending or Ending.COMPLETE, self._tokens))
            elif not self._over:
                self._on_chunk(data)

    def _on_chunk(self, data: str) -> None:
        try:
            chunk = json.loads(data)
            if "error" in chunk:
                self._end(ChatFailed(ApiError.model_validate(chunk).error.message))
                return
            if chunk.get("usage"):
                self._tokens = int(chunk["usage"]["completion_tokens"])
            for choice in chunk.get("choices", ()):
                if text := choice.get("delta", {}).get("content"):
                    self._send(ChatToken(text, self._clock.monotonic_s()))
                if reason := choice.get("finish_reason"):
                    self._ending = Ending.LENGTH if reason == "length" else Ending.COMPLETE
        except (ValueError, TypeError, KeyError, AttributeError):
            self._end(ChatFailed(self.tr("The engine sent an answer that cannot be read.")))

    def _on_finished(self) -> None:
        self._reply.deleteLater()
        self.deleteLater()
        if self._over:
            return
        body = bytes(self._reply.readAll().data())
        if self._reply.error() is QNetworkReply.NetworkError.NoError and self._ending:
            self._end(ChatEnded(self._ending, self._tokens))
        elif self._started:
            self._end(
                ChatFailed(self.tr("The connection broke before the answer ended. Try again."))
            )
        else:
            self._end(ChatFailed(_failure_text(self._reply, body, self.tr)))


def _status_code(reply: QNetworkReply) -> int:
    """HTTP status, or 0 when no answer has arrived."""
    code = reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute)
    return int(code) if code is not None else 0


def _failure_text(reply: QNetworkReply, body: bytes, tr: Callable[[str], str]) -> str:
    """The engine's own sentence if it sent one, else one of ours."""
    with suppress(ValidationError):
        return ApiError.model_validate_json(body).error.message
    if code := _status_code(reply):
        return tr("The engine answered with an error ({code}).").format(code=code)
    return tr("The engine does not answer. It may be restarting; try again in a moment.")
