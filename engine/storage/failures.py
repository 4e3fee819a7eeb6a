"""What SQLite reports, as our errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.core.errors import DatabaseDamaged, DiskFull, EngineError, StorageError


@contextmanager
def as_engine_errors(path: Path) -> Iterator[None]:
    """Translate what goes wrong with the file at `path`; broken constraints pass as they are.

    Raises:
        DiskFull: There is no space.
        DatabaseDamaged: The file's contents do not hold together.
        StorageError: It cannot be opened, read or written.
    """
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # about the values, not the file: for whoever gave them
    except sqlite3.DatabaseError as error:
        raise _translated(error, path) from error
    except OSError as error:
        raise StorageError(
            f"Shoal cannot use {path} ({error.strerror}); correct its permissions or set "
            "SHOAL_HOME to another folder."
        ) from error


def _translated(error: sqlite3.DatabaseError, path: Path) -> EngineError:
    # Extended codes have the kind in their lowest byte; Python's own errors have none.
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return DiskFull(
                f"The disk that holds {path} is full, so nothing more can be kept; free some space."
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return DatabaseDamaged(
                f"The database {path} is damaged; start Shoal again, and it will keep this file "
                "aside and begin a new one."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StorageError(
                f"Shoal cannot write its database {path} ({error}); correct the permissions of the "
                "file and its folder, or set SHOAL_HOME to another folder."
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageError(
                f"Another program is using the database {path}; close it and try again."
            )
        case _:
            return StorageError(
                f"The database {path} cannot be used ({error}); check the disk, then start Shoal "
                "again."
            )
