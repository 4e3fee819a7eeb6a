"""Small files that say how far a setup came, and one setup at a time."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from installers.setup_steps.report import Report


def read_json(path: Path) -> dict[str, object]:
    """What was written; empty when nothing was, or when writing was cut off."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # never written, or cut off: the same as not done
        return {}
    return value if isinstance(value, dict) else {}


def write_json(path: Path, value: dict[str, object]) -> None:
    """Write a file that is there as a whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(value, indent=1), encoding="utf-8")
    partial.replace(path)


@contextlib.contextmanager
def alone(folder: Path, report: Report) -> Iterator[None]:
    """Keep a second setup in the same folder waiting."""
    import fcntl  # not there on Windows, where we never come this far

    handle = os.open(folder, os.O_RDONLY)
    os.set_inheritable(handle, True)  # pip holds the lock on if we are killed
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report.say("Another setup is running in this folder; waiting for it to end.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
