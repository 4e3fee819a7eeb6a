"""One app per Shoal home: a second start raises the windows of the first and ends.

A lock file decides who is first, because it cannot be won twice and outlives no process; the local
socket only carries the wish to be seen.
"""

from __future__ import annotations

import hashlib
import time

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from engine.localapi.running import Home

RAISE = b"raise\n"
OPEN = b"open "
"""Followed by an invite and the end of the line."""
LONGEST_WISH = 16384
DONE = b"done\n"
ANSWER_LIMIT_MS = 1500
HAND_OVER_LIMIT_S = 8.0
"""The first app may be quitting; its lock is free when it is gone."""


class SingleInstance(QObject):
    """The claim to be the one app of a home.

    Signals:
        raised: Another start wants our windows to be seen.
        opened: Another start was given this invite.
    """

    raised = Signal()
    opened = Signal(str)

    def __init__(self, home: Home, parent: QObject | None = None) -> None:
        super().__init__(parent)
        folder = str(home.state_dir)
        digest = hashlib.sha256(folder.encode()).hexdigest()[:16]
        self._name = f"shoal-app-{digest}"
        home.state_dir.mkdir(parents=True, exist_ok=True)
        self._lock = QLockFile(f"{folder}/app.lock")
        self._lock.setStaleLockTime(0)  # only a dead owner frees it, never its age
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._callers: list[QLocalSocket] = []
        self._server.newConnection.connect(self._on_connection)

    def claim(self, invite: str = "") -> bool:
        """Become the one app (True), or hand over to the one that is (False).

        The one that is, is given the invite too. Blocks for up to some seconds; call before the event loop and before any window.

        Raises:
            TimeoutError: Another app holds the lock but does not answer.
        """
        limit_s = time.monotonic() + HAND_OVER_LIMIT_S
        while not self._lock.tryLock(0):
            if self._hand_over(OPEN + invite.encode() + b"\n" if invite else RAISE):
                return False
            if time.monotonic() > limit_s:
                raise TimeoutError
            time.sleep(0.1)
        QLocalServer.removeServer(self._name)  # a socket left by a killed app
        self._server.listen(self._name)
        return True

    def release(self) -> None:
        """Let the next start be first."""
        self._server.close()
        self._lock.unlock()

    def _hand_over(self, wish: bytes) -> bool:
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(ANSWER_LIMIT_MS):
            return False
        socket.write(wish)
        socket.waitForBytesWritten(ANSWER_LIMIT_MS)
        return socket.waitForReadyRead(ANSWER_LIMIT_MS) and socket.readAll().data() == DONE

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            self._callers.append(socket)
            socket.readyRead.connect(self._on_wish)
            socket.disconnected.connect(self._forget_the_gone)

    def _on_wish(self) -> None:
        for caller in self._callers:
            if not caller.canReadLine():
                continue
            wish = bytes(caller.readLine(LONGEST_WISH).data())
            if wish != RAISE and not wish.startswith(OPEN):
                continue
            caller.write(DONE)
            caller.flush()
            if wish == RAISE:
                self.raised.emit()
            else:
                self.opened.emit(wish.removeprefix(OPEN).decode("utf-8", "replace").strip())

    def _forget_the_gone(self) -> None:
        gone = QLocalSocket.LocalSocketState.UnconnectedState
        self._callers = [caller for caller in self._callers if caller.state() is not gone]
