"""What setup tells the person at the terminal."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TextIO


class SetupFailed(Exception):
    """Setup cannot go on; the text is one sentence: what happened, why, and what to do."""


class Report:
    """Lines for a person; on a terminal also one line that keeps changing while work goes on."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._live = self._stream.isatty()
        self._has_progress = False

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._clear()
        print(text, file=self._stream, flush=True)

    def step(self, name: str) -> None:
        """Note which part of the work begins, for programs that show it in words of their own."""

    def progress(self, text: str, share: float | None = None) -> None:
        """Replace the changing line; without a terminal this prints nothing.

        Args:
            text: What is going on.
            share: How much of it is done, 0 to 1, if that is known.
        """
        if not self._live:
            return
        self._clear()
        width = shutil.get_terminal_size().columns - 1
        print(text[:width], end="", file=self._stream, flush=True)
        self._has_progress = True

    def _clear(self) -> None:
        if self._has_progress:
            print("\r\033[K", end="", file=self._stream)
            self._has_progress = False


class JsonReport(Report):
    """The same for a program that listens: an object on each line of standard output."""

    def say(self, text: str) -> None:
        """Tell a sentence."""
        self._tell(say=text)

    def step(self, name: str) -> None:
        """Tell which part of the work begins."""
        self._tell(step=name)

    def progress(self, text: str, share: float | None = None) -> None:
        """Tell how far it is."""
        self._tell(progress=text.strip(), share=share)

    def _tell(self, **values: object) -> None:
        print(json.dumps(values), flush=True)
