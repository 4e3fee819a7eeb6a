"""Files of `/v1/files`: what clients have uploaded, and the results of their batches.

Uploads lie on disk, one file each; results are read from the rows whenever somebody wants them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import fields
from io import BufferedWriter
from pathlib import Path
from typing import Final

from engine.core.clock import Clock
from engine.core.errors import RequestError
from engine.jobs.output import Results, output_error
from engine.jobs.records import FileRecord, Job
from engine.jobs.store import JobNotFound, JobStore
from engine.storage.database import Database

MAX_UPLOAD_BYTES: Final = 200 << 20
"""As OpenAI has it."""
_FIELDS: Final = ", ".join(field.name for field in fields(FileRecord))


class UploadTooLarge(RequestError):
    """A file beyond the limit."""

    code = "file_too_large"


class Files:
    """All of them.

    Args:
        folder: Where uploads lie.
        database: Where their entries are.
        store: The jobs whose results are files too.
        clock: The time.
    """

    def __init__(self, folder: Path, database: Database, store: JobStore, clock: Clock) -> None:
        self._folder = folder
        self._database = database
        self._store = store
        self._clock = clock

    async def add(self, name: str, purpose: str, chunks: AsyncIterator[bytes]) -> FileRecord:
        """Keep a file; nothing stays of one that breaks off.

        Raises:
            UploadTooLarge: It has more than `MAX_UPLOAD_BYTES`.
            DiskFull, OutputUnusable: It cannot be kept.
        """
        file_id = f"file-{secrets.token_hex(12)}"
        path = self.path(file_id)
        fresh = path.with_name(f".{path.name}.new")
        try:
            size_bytes = await self._write(fresh, chunks)
            fresh.rename(path)
        except OSError as error:
            raise output_error(path, error) from error
        finally:
            fresh.unlink(missing_ok=True)
        record = FileRecord(file_id, name, purpose, size_bytes, self._clock.unix_s())
        await self._enter(record)
        return record

    async def enter_results(self, job: Job) -> None:
        """Enter a batch's output and error files, of which OpenAI's clients ask for the contents."""
        for has_failures in (False, True):
            results, size_bytes = Results(self._store, job, "jsonl"), 0
            while (lines := await results.next(skip_pending=True, failed=has_failures)) is not None:
                size_bytes += sum(map(len, lines))
            if not size_bytes:
                continue
            kind = "errors" if has_failures else "output"
            await self._enter(
                FileRecord(
                    f"file-{job.id.removeprefix('batch_')}-{kind}",
                    f"{job.id}_{kind}.jsonl",
                    "batch_output",
                    size_bytes,
                    self._clock.unix_s(),
                    job.key,
                    has_failures,
                )
            )

    async def all(self) -> list[FileRecord]:
        """All, newest first."""
        query = f"SELECT {_FIELDS} FROM files ORDER BY created_unix_s DESC, id"
        return await self._database.read(lambda c: [_record(row) for row in c.execute(query)])

    async def one(self, file_id: str) -> FileRecord:
        """One.

        Raises:
            JobNotFound: There is none of this id.
        """
        query = f"SELECT {_FIELDS} FROM files WHERE id = ?"
        row = await self._database.read(lambda c: c.execute(query, (file_id,)).fetchone())
        if row is None:
            raise JobNotFound(f"There is no file {file_id[:60]!r}; it may have been deleted.")
        return _record(row)

    async def results_of(self, job: Job) -> list[FileRecord]:
        """The results of a job that were entered."""
        query = f"SELECT {_FIELDS} FROM files WHERE job = ? ORDER BY has_failures"
        return await self._database.read(
            lambda c: [_record(row) for row in c.execute(query, (job.key,))]
        )

    async def delete(self, file_id: str) -> None:
        """Delete a file and its entry.

        Raises:
            JobNotFound: There is none of this id.
        """
        record = await self.one(file_id)
        await self._database.write(
            lambda c: c.execute("DELETE FROM files WHERE id = ?", (file_id,))
        )
        if record.job is None:
            await asyncio.to_thread(self.path(file_id).unlink, missing_ok=True)

    def path(self, file_id: str) -> Path:
        """Where the contents of an upload lie."""
        return self._folder / file_id

    async def _enter(self, record: FileRecord) -> None:
        values = [getattr(record, field.name) for field in fields(FileRecord)]
        marks = ", ".join("?" * len(values))
        query = f"INSERT OR REPLACE INTO files ({_FIELDS}) VALUES ({marks})"
        await self._database.write(lambda c: c.execute(query, values))

    async def _write(self, path: Path, chunks: AsyncIterator[bytes]) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        size_bytes = 0
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            async for chunk in chunks:
                size_bytes += len(chunk)
                if size_bytes > MAX_UPLOAD_BYTES:
                    raise UploadTooLarge(
                        f"The file is larger than {MAX_UPLOAD_BYTES >> 20} MB; split it.",
                        param="file",
                    )
                await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(_sync, file)
        return size_bytes


def _sync(file: BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())


def _record(row: sqlite3.Row) -> FileRecord:
    return FileRecord(**{**row, "has_failures": bool(row["has_failures"])})
