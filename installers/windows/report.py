"""What the setup's wizard and its log learn of the work."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path


class SetupStopped(Exception):
    """The person wants to go on at another time."""


class Report:
    """Files that the wizard reads, in UTF-16 as its language wants it, and a log for people.

    Args:
        exchange: The wizard's folder for this run. It gets `progress.txt`, a line of percent and
            text, and at the end `result.txt`, one sentence. A file called `stop` in it asks to stop.
        log: Is continued.
    """

    def __init__(self, exchange: Path, log: Path) -> None:
        self._exchange = exchange
        self.log = log
        self._from, self._to = 0.0, 1.0
        self._last = ""

    def phase(self, begin: float, end: float) -> None:
        """The shares of what follows lie between these two of the whole."""
        self._from, self._to = begin, end

    def progress(self, share: float, text: str) -> None:
        """Say how far the present phase is, and what is being done.

        Raises:
            SetupStopped: The person wants to stop.
        """
        self.give_up_if_asked()
        whole = self._from + (self._to - self._from) * min(max(share, 0.0), 1.0)
        line = f"{int(100 * whole)}|{text}"
        if line == self._last:
            return
        if text != self._last.partition("|")[2]:
            self.note(text)
        self._last = line
        with contextlib.suppress(OSError):  # the wizard is reading it; the next line comes soon
            (self._exchange / "progress.txt").write_text(line, encoding="utf-16")

    def is_stop_wanted(self) -> bool:
        """Whether the person wants to stop."""
        return (self._exchange / "stop").exists()

    def give_up_if_asked(self) -> None:
        """Go no further if the person wants to stop.

        Raises:
            SetupStopped: So it is.
        """
        if self.is_stop_wanted():
            raise SetupStopped

    def note(self, text: str) -> None:
        """A line for the log alone."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        moment = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{moment} {text}\n")

    def result(self, sentence: str) -> None:
        """The last word, for the wizard's last page."""
        with contextlib.suppress(OSError):  # a full disk is what it may have to tell of
            self.note(sentence)
        (self._exchange / "result.txt").write_text(sentence, encoding="utf-16")
