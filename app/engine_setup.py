"""`shoal-setup` as a process: asks what there is, sets up, interrupts, cleans up."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QProcess, QTimer, Signal

KILL_AFTER_S = 10.0


class EngineSetup(QObject):
    """Runs one command of it at a time.

    Args:
        command: What `check`, `install` and `remove` are given to.

    Signals:
        line: Something that the running command has said.
        ended: (command, whether it succeeded).
    """

    line = Signal(str)
    ended = Signal(str, bool)

    def __init__(self, command: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._program, *self._arguments = command
        self._process: QProcess | None = None
        self._next = ""
        """What was asked for while the running command was still ending."""
        self._rest = b""
        self._limit = QTimer(self, singleShot=True, interval=int(KILL_AFTER_S * 1000))
        self._limit.timeout.connect(self._kill)

    def run(self, word: str) -> None:
        """Start `check`, `install` or `remove`, once the running one has ended if there is one."""
        if self._process is not None:
            self._next = word
            return
        process = QProcess(self)
        process.setProgram(self._program)
        process.setArguments([*self._arguments, word, "--json"])
        process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
        process.setStandardInputFile(QProcess.nullDevice())
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(lambda code, status: self._on_ended(word, code == 0, status))
        process.errorOccurred.connect(lambda error: self._on_error(word, error))
        self._process = process
        self._rest = b""
        process.start()

    def interrupt(self) -> None:
        """End the running command, and what waits for it; what it has downloaded stays."""
        self._next = ""
        if self._process is not None:
            self._process.terminate()
            self._limit.start()

    @property
    def is_running(self) -> bool:
        """Whether a command runs."""
        return self._process is not None

    def _read(self) -> None:
        if self._process is None:
            return
        *lines, self._rest = (
            self._rest + bytes(self._process.readAllStandardOutput().data())
        ).split(b"\n")
        for line in lines:
            self.line.emit(line.decode("utf-8", "replace"))

    def _on_error(self, word: str, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:  # all others are followed by `finished`
            self._process, self._next = None, ""
            self.ended.emit(word, False)

    def _on_ended(self, word: str, well: bool, status: QProcess.ExitStatus) -> None:
        self._read()
        self._limit.stop()
        if self._process is not None:
            self._process.deleteLater()
            self._process = None
        self.ended.emit(word, well and status is QProcess.ExitStatus.NormalExit)
        following, self._next = self._next, ""
        if following:
            self.run(following)

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
