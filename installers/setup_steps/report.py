"""What setup tells the person at the terminal."""

from __future__ import annotations

import shutil
import sys


class SetupFailed(Exception):
    """Setup cannot go on; the text is one sentence: what happened, why, and what to do."""


class Report:
    """Lines for a person; on a terminal also one line that keeps changing while work goes on."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._has_progress = False

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._clear()
        print(text, flush=True)

    def progress(self, text: str) -> None:
        """Replace the changing line; without a terminal this prints nothing."""
        if not self._live:
            return
        self._clear()
        width = shutil.get_terminal_size().columns - 1
        print(text[:width], end="", flush=True)
        self._has_progress = True

    def _clear(self) -> None:
        if self._has_progress:
            print("\r\033[K", end="")
            self._has_progress = False
