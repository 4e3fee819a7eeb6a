"""The engine as a process: use the one that runs, else start one, watch it, start it again.

An engine that we start holds a lease on us (`--leased`): it ends when our event stream closes,
however we end. Nothing here waits: files are looked at by a timer, the process tells by signals.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import IntEnum

from pydantic import ValidationError
from PySide6.QtCore import (
    QElapsedTimer,
    QObject,
    QProcess,
    QProcessEnvironment,
    QTimer,
    Signal,
)

from app.messages import EngineCrashed, EngineFound, EngineStarting, EngineStopped, Message
from app.wsl import decoded, environment
from app.wsl_troubles import Trouble, sentence, trouble_in
from engine.localapi.launch import ERROR_PREFIX
from engine.localapi.running import Home, find_running
from engine.localapi.schema import ReadyFile
from engine.localapi.versions import RESTART_EXIT, ROLLED_BACK_FROM

MAX_CRASHES = 5
RESTART_DELAYS_S = (0.5, 1.0, 2.0, 4.0)
STABLE_AFTER_S = 120.0
"""An engine that has run this long starts the count of crashes anew."""
READY_LIMIT_S = 180.0
"""Loading libraries from a cold disk takes tens of seconds; this is beyond doubt."""
POLL_S = 0.1
QUIT_LIMIT_S = 8.0
"""An engine that was asked to end gets this long for leaving the swarm."""
TERMINATE_LIMIT_S = 3.0
KEPT_STDERR_BYTES = 8192
LONGEST_REASON = 300
SETTLED_AFTER_S = 10.0
"""A found engine that goes sooner was ending already, with another app's lease for example."""


class ExitCode(IntEnum):
    """Exit codes of the `shoal` commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2


@dataclass(frozen=True, slots=True)
class EngineStart:
    """How to start an engine.

    Attributes:
        command: The program and its arguments; `--leased` and where to say that it is ready are added.
        home: Where the engine keeps its files, as programs here find them.
        in_wsl: It runs in Linux under Windows, says on its output that it is ready, and cannot be
            reached by a signal: it ends with its lease.
        setup: What sets up the environment that it needs, if it has one of its own.
    """

    command: tuple[str, ...]
    home: Home
    in_wsl: bool = False
    setup: tuple[str, ...] = ()


class EngineProcess(QObject):
    """Keeps one engine running for us.

    Signals:
        message: An `app.state.Message` for the store.
        ready: `ReadyFile` of an engine that answers now.
        ended: After `end`: our engine is gone, or there was none.
        restart_wanted: Our engine has ended to be started again as a new version; `ended` follows.
    """

    message = Signal(object)
    ready = Signal(object)
    ended = Signal()
    restart_wanted = Signal()

    def __init__(self, home: Home, start: EngineStart, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._home = home
        self._start = start
        self._ready_file = home.state_dir / f"engine-of-app-{os.getpid()}.json"
        self._process: QProcess | None = None
        self._found: ReadyFile | None = None
        self._reached = False
        self._crashes = 0
        self._stdout = b""
        self._stderr = b""
        self._uptime = QElapsedTimer()
        self._found_since = QElapsedTimer()
        self._ending = False
        self._restart = QTimer(self, singleShot=True)
        self._restart.timeout.connect(self._find_or_launch)
        self._poll = QTimer(self, interval=int(POLL_S * 1000))
        self._poll.timeout.connect(self._look_for_ready_file)
        self._end_limit = QTimer(self, singleShot=True)
        self._end_limit.timeout.connect(self._end_harder)

    @property
    def is_ours(self) -> bool:
        """Whether the engine is a process of ours, which must end with us."""
        return self._process is not None

    def start(self) -> None:
        """Use the running engine, or start one. Also the answer to "Try again"."""
        if self._process is not None or self._ending:
            return
        self._restart.stop()
        self._crashes = 0
        self._find_or_launch()

    def link_opened(self) -> None:
        """The engine has answered over the API."""
        self._reached = True

    def link_lost(self) -> None:
        """The API does not answer: see whether an engine that we only found is still there.

        Our own process needs no such look, it tells when it ends.
        """
        if self._found is None or self._ending:
            return
        running = find_running(self._home)
        if running is not None and running != self._found:
            self._use(running)
        elif running is None and self._reached and self._settled():
            self._found = None
            self._send(EngineStopped(self.tr("The engine that was running has ended.")))
        elif running is None or not self._reached:
            # It was about to end, or its file is older than its process: it was never there.
            self._found = None
            self._launch()

    def end(self, *, asked: bool) -> None:
        """End our engine, then send `ended`; an engine that we only found is left alone.

        Args:
            asked: Whether the engine has been asked to end over the API already.
        """
        self._ending = True
        self._restart.stop()
        self._poll.stop()
        if self._process is None:
            QTimer.singleShot(0, self.ended.emit)
        elif asked:
            self._end_limit.start(int(QUIT_LIMIT_S * 1000))
        else:
            self._process.terminate()
            self._end_limit.start(int(TERMINATE_LIMIT_S * 1000))

    def _send(self, message: Message) -> None:
        self.message.emit(message)

    def _settled(self) -> bool:
        return self._found_since.elapsed() > SETTLED_AFTER_S * 1000

    def _find_or_launch(self) -> None:
        if (running := find_running(self._home)) is not None:
            self._use(running)
        else:
            self._launch()

    def _use(self, running: ReadyFile) -> None:
        if self._found is None:
            self._found_since.start()
        self._found = running
        self._reached = False
        self._send(EngineFound())
        self.ready.emit(running)

    def _launch(self) -> None:
        try:
            self._home.state_dir.mkdir(parents=True, exist_ok=True)
            self._ready_file.unlink(missing_ok=True)
        except OSError as error:
            self._send(EngineStopped(self._cannot_write(error)))
            return
        process = QProcess(self)
        program, *arguments = self._start.command
        process.setProgram(program)
        told_by_file = () if self._start.in_wsl else ("--ready-file", str(self._ready_file))
        process.setArguments([*arguments, "--leased", *told_by_file])
        if sys.platform != "win32":
            # Ctrl-C in the terminal is for us; we end the engine in order.
            own_session = QProcess.UnixProcessFlag.CreateNewSession
            process.setUnixProcessParameters(own_session)
        process.setStandardInputFile(QProcess.nullDevice())
        if self._start.in_wsl:
            variables = QProcessEnvironment()
            for name, value in environment((ROLLED_BACK_FROM,)).items():
                variables.insert(name, value)
            process.setProcessEnvironment(variables)
            process.readyReadStandardOutput.connect(self._look_for_ready_line)
        else:
            process.setStandardOutputFile(QProcess.nullDevice())
        process.readyReadStandardError.connect(self._keep_stderr)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)
        self._process = process
        self._stdout = self._stderr = b""
        self._uptime.start()
        self._send(EngineStarting())
        self._poll.start()
        process.start()

    def _cannot_write(self, error: OSError) -> str:
        return self.tr(
            "Shoal cannot write to {folder} ({reason}). Free space or correct its rights."
        ).format(folder=self._home.state_dir, reason=error.strerror)

    def _look_for_ready_file(self) -> None:
        try:
            running = ReadyFile.model_validate_json(self._ready_file.read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            if self._uptime.elapsed() > READY_LIMIT_S * 1000 and self._process is not None:
                self._poll.stop()
                self._process.kill()  # counts as a crash
            return
        self._poll.stop()
        self._ready_file.unlink(missing_ok=True)
        self.ready.emit(running)

    def _look_for_ready_line(self) -> None:
        if self._process is None:
            return
        chunk = bytes(self._process.readAllStandardOutput().data())
        self._stdout = (self._stdout + chunk)[-KEPT_STDERR_BYTES:]
        if not self._poll.isActive() or not self._stdout.endswith(b"\n"):
            return
        try:
            running = ReadyFile.model_validate_json(self._stdout.splitlines()[-1])
        except ValidationError:
            return  # words of wsl.exe
        self._poll.stop()
        self._stdout = b""  # it holds the token
        self.ready.emit(running)

    def _keep_stderr(self) -> None:
        if self._process is not None:
            chunk = bytes(self._process.readAllStandardError().data())
            self._stderr = (self._stderr + chunk)[-KEPT_STDERR_BYTES:]

    def _on_error(self, error: QProcess.ProcessError) -> None:
        # Every other error is followed by `finished`.
        if error is QProcess.ProcessError.FailedToStart:
            reason = self.tr("{program} cannot be started. Install Shoal again.")
            text = reason.format(program=self._start.command[0])
            absent = sentence(Trouble.ABSENT, self.tr)
            self._on_gone(absent if self._start.in_wsl else text, again=False)

    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        self._keep_stderr()
        crashed = status is QProcess.ExitStatus.CrashExit
        if not crashed and code == RESTART_EXIT:
            self._ending = True
            self.restart_wanted.emit()
            self._on_gone("", again=False)
            return
        if not crashed and code == ExitCode.DONE:
            # Someone ended it on purpose; starting it again would be against their will.
            self._on_gone(self.tr("The engine was asked to end."), again=False)
            return
        how = (
            self.tr("The engine was ended by the system.")
            if crashed
            else self.tr("The engine failed (exit code {code}).").format(code=code)
        )
        if self._start.in_wsl and (trouble := self._trouble(code)) is not None:
            self._on_gone(sentence(trouble, self.tr), again=trouble is Trouble.TIMED_OUT)
            return
        last = self._last_line()
        self._on_gone(last or how, again=crashed or code != ExitCode.USAGE)

    def _trouble(self, code: int) -> Trouble | None:
        """Why WSL could not run the engine; None when it could."""
        said = decoded(self._stdout) + decoded(self._stderr)
        trouble = trouble_in(code, said)
        return None if trouble is Trouble.UNKNOWN else trouble

    def _on_gone(self, reason: str, *, again: bool) -> None:
        self._poll.stop()
        self._end_limit.stop()
        self._ready_file.unlink(missing_ok=True)
        if self._process is not None:
            self._process.deleteLater()
            self._process = None
        if self._ending:
            self.ended.emit()
            return
        if not again:
            self._send(EngineStopped(reason))
            return
        if self._uptime.elapsed() > STABLE_AFTER_S * 1000:
            self._crashes = 0
        self._crashes += 1
        if self._crashes >= MAX_CRASHES:
            text = self.tr("It ended {count} times in a row. {reason} The log is {file}.")
            self._send(
                EngineStopped(
                    text.format(count=self._crashes, reason=reason, file=self._start.home.log_file)
                )
            )
            return
        self._send(EngineCrashed(reason))
        self._restart.start(int(RESTART_DELAYS_S[self._crashes - 1] * 1000))

    def _last_line(self) -> str:
        """The sentence that the engine left, or else the last thing it wrote."""
        output = decoded(self._stderr) or decoded(self._stdout)
        lines = [line.strip() for line in output.splitlines()]
        told = [line.removeprefix(ERROR_PREFIX) for line in lines if line.startswith(ERROR_PREFIX)]
        written = told or [line for line in lines if line]
        return written[-1][:LONGEST_REASON] if written else ""

    def _end_harder(self) -> None:
        if self._process is None:
            return
        if self._end_limit.interval() == int(QUIT_LIMIT_S * 1000):
            self._process.terminate()
            self._end_limit.start(int(TERMINATE_LIMIT_S * 1000))
        else:
            self._process.kill()
