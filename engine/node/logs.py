"""The engine's log: what has happened, and never what anybody has written."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import traceback
from types import TracebackType
from typing import Any, Final

from engine.localapi.running import Home

_logger = logging.getLogger(__name__)

_FILE_BYTES: Final = 4 << 20
_FILES: Final = 3


def log_to_file(home: Home, *, debug: bool) -> logging.Handler:
    """Log to the home's file, rotated; never prompts, tokens or activations."""
    home.log_file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.handlers.RotatingFileHandler(
        home.log_file, maxBytes=_FILE_BYTES, backupCount=_FILES, encoding="utf-8"
    )
    handler.setFormatter(_Discreet("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("engine")
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    return handler


def log_stray_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no task awaits, such as hivemind's when someone hangs up."""
    error = context.get("exception")
    if error is None:
        _logger.error("%s", context["message"])
    else:  # asyncio's message may show the arguments of a call
        _logger.error("an error that nobody waits for", exc_info=error)


class _Discreet(logging.Formatter):
    """Tells of an error what it is and where it arose; its text may hold what somebody has written."""

    def formatException(  # noqa: N802 - logging's own name
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        """See `logging.Formatter`."""
        lines: list[str] = []
        error = ei[1]
        while error is not None:
            lines.append(f"{type(error).__qualname__}, raised in")
            lines += [
                f"  {frame.filename}:{frame.lineno} ({frame.name})"
                for frame in traceback.extract_tb(error.__traceback__, limit=-20)
            ]
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n".join(lines)
