"""The results file of a job: lines in input order, appended and synced while the job runs.

The store is what counts. A file that a kill has cut short, or that somebody has changed, is held
against the store when the job goes on, and is rewritten from the first line that differs.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from engine.core.errors import DiskFull, EngineError, RequestError
from engine.jobs.records import Job, Row
from engine.jobs.results import ResultTable, openai_line
from engine.jobs.store import JobStore
from engine.localapi.jobs import ResultFormat, RowState

PAGE_ROWS: Final = 200
_ENDED: Final = (RowState.DONE, RowState.FAILED)


class OutputUnusable(RequestError):
    """The results file cannot be written."""

    code = "output_unusable"


class Results:
    """The lines of a job's results, page by page."""

    def __init__(self, store: JobStore, job: Job, format_: ResultFormat) -> None:
        self._store = store
        self._job = job
        self._format = format_
        self._table: ResultTable | None = None
        self._after = -1

    async def next(self, *, skip_pending: bool, failed: bool | None = None) -> list[bytes] | None:
        """The next lines; None: there are none now.

        Args:
            skip_pending: Give later lines although rows before them have not ended.
            failed: Only the rows that have failed, or only the others; None: both.
        """
        rows = await self._store.rows(self._job.key, self._after, PAGE_ROWS)
        lines: list[bytes] = []
        if self._format == "csv" and self._table is None and rows:
            self._table = ResultTable(_columns(rows))
            lines.append(self._table.header())
        before = self._after
        for row in rows:
            if row.state in _ENDED:
                if failed is None or failed == (row.state is RowState.FAILED):
                    lines.append(self._line(row))
            elif not skip_pending:
                break
            self._after = row.number
        return lines if lines or self._after != before else None

    def _line(self, row: Row) -> bytes:
        if self._table is not None:
            return self._table.line(row)
        return openai_line(self._job.id, row)


class ResultFile:
    """The file, open for appending."""

    def __init__(self, path: Path, results: Results) -> None:
        """See `Results`; the file is opened with the first line."""
        self.path = path
        self._results = results
        self._file: BinaryIO | None = None
        self._checking = True
        self._unwritten: list[bytes] = []
        self._writing = asyncio.Lock()

    async def advance(self, *, skip_pending: bool = False) -> None:
        """Write what has become known since the last time, and sync it.

        Raises:
            DiskFull: There is no space now; nothing is lost, call again.
            OutputUnusable: The file cannot be written.
        """
        async with self._writing:
            while True:
                lines = self._unwritten or await self._results.next(skip_pending=skip_pending)
                if lines is None:
                    break
                self._unwritten = lines
                await asyncio.to_thread(self._write, lines)
                self._unwritten = []
            await asyncio.to_thread(self._sync)

    async def close(self) -> None:
        """Close the file; it stays as it is."""
        async with self._writing:
            if self._file is not None:
                await asyncio.to_thread(self._file.close)
                self._file = None

    def _write(self, lines: Sequence[bytes]) -> None:
        try:
            file = self._opened()
            start = file.tell()
            try:
                left = memoryview(b"".join(lines[self._known(file, lines) :]))
                while left:
                    left = left[file.write(left) :]
            except OSError:
                file.seek(start)  # what came of the lines is overwritten by the next try
                self._checking = True
                raise
        except OSError as error:
            raise output_error(self.path, error) from error

    def _known(self, file: BinaryIO, lines: Sequence[bytes]) -> int:
        """How many of the lines the file holds already; it ends where they do if they are not all."""
        if not self._checking:
            return 0
        for number, line in enumerate(lines):
            start = file.tell()
            if file.read(len(line)) != line:
                file.seek(start)
                file.truncate()
                self._checking = False
                return number
        return len(lines)

    def _sync(self) -> None:
        try:
            file = self._opened()
            if self._checking:
                file.truncate()  # what follows is of an earlier run
                self._checking = False
            os.fsync(file.fileno())
        except OSError as error:
            raise output_error(self.path, error) from error

    def _opened(self) -> BinaryIO:
        if self._file is None:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._file = os.fdopen(descriptor, "r+b", buffering=0)
        assert self._file is not None
        return self._file


def output_error(path: Path, error: OSError) -> EngineError:
    """Why results cannot be written to `path`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(
            f"The disk that holds {path} is full; free some space, and the results go on."
        )
    return OutputUnusable(
        f"The results cannot be written to {path} ({error.strerror}); correct its permissions or "
        "choose another place.",
        param="output_path",
    )


def _columns(rows: Sequence[Row]) -> list[str]:
    return next((list(json.loads(row.columns)) for row in rows if row.columns != "{}"), [])
