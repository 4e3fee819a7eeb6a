"""Starting an engine from another program: the commands, the tray, an engine with stages.

Standard library only; the tray imports this too. An engine started here is leased: it ends when
the last event stream opened with `lease=1` closes, so nothing outlives a parent that was killed.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.core.errors import EngineError
from engine.localapi.running import Home
from engine.localapi.schema import ReadyFile

ERROR_PREFIX: Final = "shoal: "
"""What the commands write before the one sentence of a failure."""

_LAST_WORDS: Final = re.compile(r"shoal(?: engine)?: (?:error: )?(.+)")
"""That sentence, or argparse's."""


class EngineFailed(EngineError):
    """The engine could not start; the text is the engine's own."""

    code = "engine_failed"


@dataclass(slots=True)
class EngineProcess:
    """A started engine, ready or not."""

    process: subprocess.Popen[bytes]
    home: Home
    _ready_fd: int
    _received: bytes = b""

    @property
    def pid(self) -> int:
        """The process."""
        return self.process.pid

    def poll_ready(self, wait_s: float = 0.0) -> ReadyFile | None:
        """The engine's address as soon as its API answers; None until then.

        Call it until it answers. It may come before the model is loaded: the status tells.

        Args:
            wait_s: How long to wait for news.

        Raises:
            EngineFailed: The engine has ended.
        """
        if self._ready_fd >= 0 and select.select([self._ready_fd], [], [], wait_s)[0]:
            if chunk := os.read(self._ready_fd, 4096):
                self._received += chunk
            else:
                self._close()
        if self._received.endswith(b"}") or self._received.endswith(b"}\n"):
            self._close()
            return ReadyFile.model_validate_json(self._received)
        if self._ready_fd < 0:
            self.process.wait()
            raise EngineFailed(self.failure())
        return None

    def wait_ready(self, timeout_s: float) -> ReadyFile:
        """Block until the engine's API answers.

        Raises:
            EngineFailed: The engine ended first, or took longer than `timeout_s`.
        """
        deadline_s = time.monotonic() + timeout_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            if (ready := self.poll_ready(min(left_s, 0.5))) is not None:
                return ready
        raise EngineFailed(
            f"The engine did not answer within {timeout_s:.0f} s; see {self.home.log_file}."
        )

    def failure(self) -> str:
        """The one sentence that the engine left when it ended."""
        try:
            lines = _output_file(self.home).read_text("utf-8", "replace").splitlines()
        except OSError:
            lines = []
        for line in reversed(lines):
            if match := _LAST_WORDS.fullmatch(line):
                return match[1]
        return (
            f"The engine ended with status {self.process.returncode} and without a word; see "
            f"{self.home.log_file}."
        )

    def end(self, timeout_s: float = 10.0) -> None:
        """Wait for the engine to end by itself, and end it if it does not; its workers follow."""
        self._close()
        for stop in (self.process.terminate, self.process.kill):
            try:
                self.process.wait(timeout_s)
                return
            except subprocess.TimeoutExpired:
                stop()
        self.process.wait()

    def _close(self) -> None:
        if self._ready_fd >= 0:
            os.close(self._ready_fd)
            self._ready_fd = -1


def start_engine(args: Sequence[str], home: Home, *, leased: bool = True) -> EngineProcess:
    """Start `shoal engine` in the background; it keeps its log in `home.log_file`.

    Args:
        args: More arguments for it, as on the command line.
        home: Where it keeps its files.
        leased: End with the last lease; otherwise it runs until told to quit.

    Raises:
        EngineFailed: The home cannot be written, or Python cannot be started.
    """
    command = [sys.executable, "-m", "engine", "engine", *args]
    if leased:
        command.append("--leased")
    read_fd, write_fd = os.pipe()
    try:
        home.state_dir.mkdir(parents=True, exist_ok=True)
        with _output_file(home).open("wb") as output:
            process = subprocess.Popen(
                [*command, "--ready-fd", str(write_fd)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[write_fd],
                env=_environment(home),
                # Ctrl-C in the terminal is for the command, which stops an answer with it.
                start_new_session=True,
            )
    except OSError as error:
        os.close(read_fd)
        raise EngineFailed(
            f"The engine cannot be started: {error}. Check that {home.state_dir} can be written."
        ) from error
    finally:
        os.close(write_fd)
    return EngineProcess(process, home, read_fd)


def _output_file(home: Home) -> Path:
    """What the engine prints, as opposed to what it logs: its last words, a crash in native code."""
    return home.state_dir / "engine.out"


def _environment(home: Home) -> dict[str, str]:
    environment = dict(os.environ)
    if home != Home.from_environment():
        root = home.config_dir.parent
        assert Home.under(root) == home, "only a home under one folder can be handed on"
        environment["SHOAL_HOME"] = str(root)
    return environment
