"""How fast the disk that holds the models can be read, past the page cache."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Final

import psutil

_PIECE_BYTES: Final = 16 << 20
_FULL_PIECES: Final = 8
_QUICK_PIECES: Final = 3
_SPARE: Final = 8
"""So many times what is written must be free, or nothing is."""


def free_bytes(directory: Path) -> int:
    """Room on the disk of a directory, which need not exist yet."""
    return int(psutil.disk_usage(str(_existing(directory))).free)


def read_speeds(directory: Path, *, quick: bool) -> list[float]:
    """Bytes per second, piece by piece; empty where it cannot be tried.

    Writes a file without a name, which is gone however this ends. Blocks for up to a second or two.
    """
    pieces = _QUICK_PIECES if quick else _FULL_PIECES
    place = _existing(directory)
    if not hasattr(os, "posix_fadvise") or free_bytes(place) < _SPARE * pieces * _PIECE_BYTES:
        return []
    content = os.urandom(_PIECE_BYTES)  # a file system may compress
    try:
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            for _ in range(pieces):
                file.write(content)
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            speeds = []
            for _ in range(pieces):
                began_s = time.perf_counter()
                count = len(file.read(_PIECE_BYTES) or b"")
                speeds.append(count / (time.perf_counter() - began_s))
            return speeds
    except OSError:
        return []  # read-only, or full: the free room tells


def _existing(directory: Path) -> Path:
    """The directory, or the nearest above it that exists."""
    return next(path for path in (directory, *directory.parents) if path.is_dir())
