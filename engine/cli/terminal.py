"""What the commands write for people: progress on standard error, answers on standard output."""

from __future__ import annotations

import sys
import unicodedata
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from engine.cli.quantities import shown_bytes
from engine.localapi.schema import EngineState, EngineStatus, Progress

if TYPE_CHECKING:
    from rich.status import Status

_KEPT_CONTROLS: Final = "\n\t"


def printable(text: str) -> str:
    """`text` without control characters: what strangers' machines send must not drive a terminal."""
    return "".join(
        character
        for character in text
        if character in _KEPT_CONTROLS or unicodedata.category(character) != "Cc"
    )


def say(text: str = "") -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)


class ProgressLine:
    """One line that tells what is going on: live on a terminal, else a line for each new thing."""

    def __init__(self) -> None:
        self._live: Status | None = None
        self._last = ""

    def __enter__(self) -> Self:
        """Start; nothing is written yet."""
        if sys.stderr.isatty():
            from rich.console import Console

            self._live = Console(stderr=True).status("Starting the engine")
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the line away."""
        if self._live is not None:
            self._live.stop()

    def show(self, text: str, detail: str = "") -> None:
        """Replace the line.

        Args:
            text: What is going on.
            detail: How far it is; alone no reason for a new line in a log.
        """
        if self._live is not None:
            self._live.update(_escaped(f"{text} {detail}".rstrip()))
        elif text != self._last:
            say(f"{text} …")
        self._last = text


def describe(status: EngineStatus) -> tuple[str, str]:
    """What an engine that cannot answer yet is doing, and how far it is."""
    if status.progress is not None:
        return status.progress.what.removesuffix("."), shown_progress(status.progress)
    if status.reason:
        return status.reason.removesuffix("."), ""
    if status.state is EngineState.STARTING:
        return "Starting the engine", ""
    return "Waiting for stages that cover the whole model", ""


def shown_progress(progress: Progress) -> str:
    """How far some work is: `12.0 MiB of 90.0 MiB`."""
    if progress.unit == "bytes":
        done, total = shown_bytes(progress.done), shown_bytes(progress.total)
    else:
        done, total = f"{progress.done:.0f}", f"{progress.total:.0f} {progress.unit}".rstrip()
    return f"{done} of {total}" if progress.total else done


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
