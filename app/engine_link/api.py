"""Requests to one engine: address, token, JSON, and errors as sentences."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError
from PySide6.QtCore import QByteArray, QObject, QUrl
from PySide6.QtNetwork import (
    QNetworkAccessManager,
    QNetworkProxy,
    QNetworkReply,
    QNetworkRequest,
)

from engine.localapi.running import read_token
from engine.localapi.schema import ApiError, ReadyFile

CALL_LIMIT_S = 30.0


class Api(QObject):
    """What all resources share: which engine, and how it is asked."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._http = QNetworkAccessManager(self)
        # The engine is on loopback: a proxy from the environment could not reach it.
        self._http.setProxy(QNetworkProxy(QNetworkProxy.ProxyType.NoProxy))
        self.engine: ReadyFile | None = None

    def send(
        self, method: str, path: str, body: str | None = None, *, limit_s: float | None = None
    ) -> QNetworkReply | None:
        """Begin a request.

        Args:
            method: `GET`, `POST` …
            path: From `/` on.
            body: JSON.
            limit_s: Give up after so long without a sign of life; None: never.

        Returns:
            None when there is no engine to ask.
        """
        request = self._request(path)
        if request is None:
            return None
        if limit_s is not None:
            request.setTransferTimeout(int(limit_s * 1000))
        data = QByteArray() if body is None else QByteArray(body.encode())
        return self._http.sendCustomRequest(request, QByteArray(method.encode()), data)

    def call(
        self,
        method: str,
        path: str,
        body: BaseModel | None,
        done: Callable[[bytes], None],
        failed: Callable[[str], None],
    ) -> None:
        """Ask for one answer; exactly one of `done` and `failed` is called, perhaps at once."""
        reply = self.send(
            method,
            path,
            None if body is None else body.model_dump_json(exclude_none=True),
            limit_s=CALL_LIMIT_S,
        )
        if reply is None:
            failed(self.tr("The engine is not ready yet. Try again in a moment."))
            return
        reply.finished.connect(lambda: self._on_answered(reply, done, failed))

    def _on_answered(
        self, reply: QNetworkReply, done: Callable[[bytes], None], failed: Callable[[str], None]
    ) -> None:
        reply.deleteLater()
        data = bytes(reply.readAll().data())
        if reply.error() is not QNetworkReply.NetworkError.NoError:
            failed(failure_text(reply, data, self.tr))
            return
        try:
            done(data)
        except ValidationError:
            failed(self.tr("The engine sent an answer that cannot be read; it may be newer than "
                           "this window. Start Shoal again."))  # fmt: skip

    def _request(self, path: str) -> QNetworkRequest | None:
        """A request with the present token: another engine may have written a new one."""
        if self.engine is None:
            return None
        try:
            token = self.engine.token or read_token(Path(self.engine.token_file))
        except OSError:
            return None
        request = QNetworkRequest(QUrl(self.engine.url.rstrip("/") + path))
        request.setRawHeader(b"Authorization", f"Bearer {token}".encode())
        request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
        return request


def status_code(reply: QNetworkReply) -> int:
    """HTTP status, or 0 when no answer has arrived."""
    code = reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute)
    return int(code) if code is not None else 0


def failure_text(reply: QNetworkReply, body: bytes, tr: Callable[[str], str]) -> str:
    """The engine's own sentence if it sent one, else one of ours."""
    with suppress(ValidationError):
        return ApiError.model_validate_json(body).error.message
    if code := status_code(reply):
        return tr("The engine answered with an error ({code}).").format(code=code)
    return tr("The engine does not answer. It may be restarting; try again in a moment.")
