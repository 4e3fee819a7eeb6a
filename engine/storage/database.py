"""The open database: one thread that writes, one that reads, so that the event loop never waits.

A feature's store is a set of plain functions that take a connection; it runs them with `read` and
`write` and never keeps the connection:

    rows = await database.read(lambda c: c.execute("SELECT … LIMIT 100").fetchall())
    await database.write(lambda c: c.execute("UPDATE …", values))
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Self, TypeVar

from engine.core.clock import Clock
from engine.core.errors import DiskFull, StorageError
from engine.storage.failures import as_engine_errors
from engine.storage.migrations import MIGRATIONS, Migration
from engine.storage.opening import PutAside, connect, prepare

T = TypeVar("T")


class Database:
    """One file, open. Rows are `sqlite3.Row`: by name or by number."""

    def __init__(self, path: Path, aside: PutAside) -> None:
        """For a prepared file; see `open`."""
        self.path = path
        self.aside = aside
        """Predecessors that were put aside, which the person should learn."""
        self.trouble = ""
        """Why nothing can be kept now, which the person should learn too; empty while all is well."""
        with as_engine_errors(path):
            self._writing = connect(path)
            self._reading = connect(path, read_only=True)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="database-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="database-reader")

    @classmethod
    async def open(
        cls,
        path: Path,
        clock: Clock,
        migrations: Sequence[Migration] = MIGRATIONS,
        *,
        rolled_back: bool = False,
    ) -> Self:
        """Open the file, beginning it where there is none; the caller closes it.

        A damaged file is put aside, never deleted, and a new one begun. Before an older file is
        changed to this version's shape it is copied beside itself; when a later version has been
        `rolled_back`, that copy is used again.

        Raises:
            DatabaseTooNew: A later version of Shoal has written it; it is left as it is.
            StorageError, DiskFull: It cannot be opened or written.
        """
        return await asyncio.to_thread(
            lambda: cls(path, prepare(path, migrations, clock, rolled_back=rolled_back))
        )

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work`, which only reads, on one state of the database: all that was written before.

        Raises:
            StorageError, DatabaseDamaged: The file cannot be read.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, self._run, self._reading, "DEFERRED", work)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` as one transaction: after this returns it survives a power cut.

        An error in `work` undoes it. When the caller is cancelled it happens wholly or not at all.

        Raises:
            DiskFull: There is no space; nothing was changed.
            StorageError, DatabaseDamaged: The file cannot be written.
        """
        loop = asyncio.get_running_loop()
        try:
            result = await loop.run_in_executor(
                self._writer, self._run, self._writing, "IMMEDIATE", work
            )
        except (DiskFull, StorageError) as error:
            self.trouble = str(error)
            raise
        self.trouble = ""
        return result

    async def close(self) -> None:
        """Finish what has begun and close the file."""
        await asyncio.to_thread(self._close)

    def _run(
        self, connection: sqlite3.Connection, kind: str, work: Callable[[sqlite3.Connection], T]
    ) -> T:
        with as_engine_errors(self.path):
            connection.execute(f"BEGIN {kind}")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite rolls back by itself when the disk is full
                    connection.execute("ROLLBACK")
                raise
            return result

    def _close(self) -> None:
        # The reader goes first: the last connection to close folds the log into the file.
        self._reader.shutdown()
        self._writer.shutdown()
        with as_engine_errors(self.path), closing(self._writing), closing(self._reading):
            pass
