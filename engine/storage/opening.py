"""Opening the file: its version, its health, its shape. Blocking; nothing here runs on the loop."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from engine.core.clock import Clock
from engine.core.errors import DatabaseDamaged, DatabaseTooNew
from engine.core.whole_file import sync_directory
from engine.storage.failures import as_engine_errors
from engine.storage.migrations import Migration

logger = logging.getLogger(__name__)

BUSY_MS: Final = 5000
_WAL_LIMIT_BYTES: Final = 64 << 20
"""A long transaction lets the log grow; afterwards it shrinks to this."""


@dataclass(frozen=True, slots=True)
class PutAside:
    """Files that are not used and were not deleted."""

    damaged: Path | None = None
    """Unreadable."""
    newer: Path | None = None
    """Written by a later version, which did not start."""


def prepare(
    path: Path, migrations: Sequence[Migration], clock: Clock, *, rolled_back: bool = False
) -> PutAside:
    """Make sure that `path` is a sound database of the present version.

    Args:
        path: The file.
        migrations: All that this version knows.
        clock: The time.
        rolled_back: A later version was tried and did not start. If it has changed the file, the copy
            that it made before takes its place: nothing was lost since, because it never ran.

    Raises:
        DatabaseTooNew: A later version of Shoal has written it; it is left as it is.
        StorageError, DiskFull: It cannot be opened or brought to this version; it is as before.
    """
    damaged = newer = None
    with as_engine_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        copy = _copy_of(path, len(migrations))
        try:
            if path.exists():
                with as_engine_errors(path):
                    _check(path, len(migrations))
        except DatabaseDamaged:
            damaged = _put_aside(path, "damaged", clock)
            logger.error("the database is damaged; it is kept as %s", damaged)
        except DatabaseTooNew:
            if not (rolled_back and copy.exists()):
                raise
            newer = _put_aside(path, "rolled-back", clock)
            logger.warning("the database is that of before the update; the newer is %s", newer)
        if copy.exists() and rolled_back and not path.exists():
            # Also when the last attempt ended between the two steps.
            copy.rename(path)
            sync_directory(path.parent)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))  # chats are nobody's business
        with closing(connect(path)) as connection:
            _migrate(connection, path, migrations)
    return PutAside(damaged, newer)


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a prepared file; the connection may move between threads, but is used by one at a time.

    Transactions are begun and ended by hand.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}",
        uri=True,
        timeout=BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.row_factory = sqlite3.Row
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(
                "PRAGMA synchronous = FULL"
            )  # what was committed survives a power cut
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _check(path: Path, known_version: int) -> None:
    with closing(connect(path, read_only=True)) as connection:
        version = _version(connection)
        if version > known_version:
            raise DatabaseTooNew(
                f"{path} was written by a newer version of Shoal and stays as it is; update "
                "Shoal, or let SHOAL_HOME name another folder."
            )
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise DatabaseDamaged(f"{path} is damaged.")


def _copy_of(path: Path, version: int) -> Path:
    """Where the file was copied to before a later version changed it."""
    return path.with_name(f"{path.stem}.version-{version}{path.suffix}")


def _put_aside(path: Path, why: str, clock: Clock) -> Path:
    """Rename the file, and its log with it, so that what is readable can still be rescued."""
    day = datetime.fromtimestamp(clock.unix_s(), tz=UTC)
    kept = path.with_name(f"{path.stem}.{why}-{day:%Y-%m-%d-%H%M%S}{path.suffix}")
    for ending in ("-wal", "-shm", ""):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.rename(kept.with_name(kept.name + ending))
    return kept


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    version = _version(connection)
    if version == len(migrations):
        return
    if version:
        _copy(connection, _copy_of(path, version))
    connection.execute("PRAGMA foreign_keys = OFF")  # tables are rebuilt under their references
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in migrations[version:]:
            logger.info("the database gets %s", migration.what)
            for statement in migration.statements:
                connection.execute(statement)
        broken = connection.execute("PRAGMA foreign_key_check").fetchone()
        assert broken is None, f"a migration leaves references of {broken[0]} broken"
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back by itself when the disk is full
            connection.execute("ROLLBACK")
        raise


def _copy(connection: sqlite3.Connection, copy: Path) -> None:
    """Keep the file as it was, should the new version disappoint; a half copy never has its name."""
    fresh = copy.with_name(f".{copy.name}.new")
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(fresh)) as target:
            connection.backup(target)
            # A copy of a file in WAL mode is in WAL mode too; alone it shall be one file.
            target.execute("PRAGMA journal_mode = DELETE")
        fresh.replace(copy)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
