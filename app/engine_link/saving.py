"""An answer of the engine that goes straight into a file: it may be larger than the app shall be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QIODevice, QObject, QSaveFile
from PySide6.QtNetwork import QNetworkReply

from app.engine_link.api import CALL_LIMIT_S, Api, failure_text, status_code

Told = Callable[[], None]


class Saving(QObject):
    """One answer on its way; the file has its name only when it is whole.

    Args:
        api: The engine.
        path: What to ask for.
        file: Where it goes; what is there is replaced at the end.
        done: Called at the end.
        failed: Called instead with a sentence, and the file is as before.
    """

    def __init__(
        self, api: Api, path: str, file: Path, done: Told, failed: Callable[[str], None]
    ) -> None:
        super().__init__(api)
        self._done, self._failed = done, failed
        self._path = file
        self._error = b""
        self._is_written = True
        self._file = QSaveFile(str(file), self)
        reply = api.send("GET", path, limit_s=CALL_LIMIT_S)
        if reply is None:
            self._end(self.tr("The engine is not ready yet. Try again in a moment."))
            return
        if not self._file.open(QIODevice.OpenModeFlag.WriteOnly):
            reply.abort()
            reply.deleteLater()
            self._end(self._trouble())
            return
        reply.readyRead.connect(lambda: self._take(reply))
        reply.finished.connect(lambda: self._on_finished(reply))

    def _take(self, reply: QNetworkReply) -> None:
        data = reply.readAll()
        if status_code(reply) != 200:
            self._error += bytes(data.data())
        elif self._is_written and self._file.write(data) != data.size():
            self._is_written = False
            reply.abort()

    def _on_finished(self, reply: QNetworkReply) -> None:
        reply.deleteLater()
        if self._is_written:
            self._take(reply)
        if not self._is_written:
            self._end(self._trouble())
        elif reply.error() is not QNetworkReply.NetworkError.NoError:
            self._end(failure_text(reply, self._error, self.tr))
        elif not self._file.commit():
            self._end(self._trouble())
        else:
            self._end("")

    def _trouble(self) -> str:
        return self.tr("{path} cannot be written ({reason}); choose another place.").format(
            path=self._path, reason=self._file.errorString()
        )

    def _end(self, trouble: str) -> None:
        if trouble:
            self._file.cancelWriting()
            self._failed(trouble)
        else:
            self._done()
        self.deleteLater()
