"""Files of `/v1/files`: what clients have uploaded, and the results of their batches.

Uploads lie on disk, one file each, for a month; results are read from the rows whenever somebody wants
them, and live as long as their batch.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import fields
from io import BufferedWriter
from pathlib import Path
from typing import Final

from engine.core.clock import Clock
from engine.core.errors import DiskFull, RequestError
from engine.jobs.job_table import JobNotFound
from engine.jobs.output import Results, output_error
from engine.jobs.records import FileRecord, Job
from engine.jobs.store import JobStore
from engine.storage.database import Database

logger = logging.getLogger(__name__)

MAX_UPLOAD_BYTES: Final = 200 << 20
"""As OpenAI has it."""
MAX_UPLOADS_BYTES: Final = 4 << 30
"""Of all uploads together."""
KEPT_S: Final = 30 * 86400.0
"""How long an upload is kept, as OpenAI keeps files for batches."""
_NAME: Final = re.compile(r"file-[0-9a-f]{24}|\.file-[0-9a-f]{24}\.new")
"""What uploads, whole or not, are called in their folder; nothing else there is ours to remove."""
_KEPT_JOBS: Final = "(job IS NULL OR job IN (SELECT id FROM jobs WHERE deleted_unix_s IS NULL))"
_FIELDS: Final = ", ".join(field.name for field in fields(FileRecord))


class UploadTooLarge(RequestError):
    """A file beyond the limit, alone or with those that are there."""

    code = "file_too_large"


class Files:
    """All of them.

    Args:
        folder: Where uploads lie.
        database: Where their entries are.
        store: The jobs whose results are files too.
        clock: The time.
        disk_free_bytes: Tells how much of the disk uploads leave free.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        store: JobStore,
        clock: Clock,
        disk_free_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        self._folder = folder
        self._database = database
        self._store = store
        self._clock = clock
        self._disk_free_bytes = disk_free_bytes
        self._arriving: dict[str, int] = {}
        """Bytes so far of uploads that have no entry yet, by id."""

    async def add(self, name: str, purpose: str, chunks: AsyncIterator[bytes]) -> FileRecord:
        """Keep a file; nothing stays of one that breaks off.

        Raises:
            UploadTooLarge: It has more than `MAX_UPLOAD_BYTES`, or all would have too many.
            DiskFull, OutputUnusable: It cannot be kept.
        """
        file_id = f"file-{secrets.token_hex(12)}"
        path = self.path(file_id)
        fresh = path.with_name(f".{path.name}.new")
        self._arriving[file_id] = 0
        try:
            size_bytes = await self._write(file_id, fresh, chunks)
            fresh.rename(path)
            record = FileRecord(file_id, name, purpose, size_bytes, self._clock.unix_s())
            await self._enter(record)
        except OSError as error:
            raise output_error(path, error) from error
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            fresh.unlink(missing_ok=True)
            del self._arriving[file_id]
        return record

    async def tidy(self) -> None:
        """Remove uploads after their time, and what an engine that was killed has left of some.

        What a job has not read to its end yet stays.

        Raises:
            StorageError: The entries cannot be read or written.
        """
        oldest_s = self._clock.unix_s() - KEPT_S
        wanted = {job.spec.input_file_id for job in await self._store.unfinished()}
        for record in await self.all():
            if record.job is None and record.created_unix_s < oldest_s and record.id not in wanted:
                await self.delete(record.id)
        names = {record.id for record in await self.all()} | set(self._arriving)
        await asyncio.to_thread(_remove_strays, self._folder, names)

    async def enter_results(self, job: Job) -> None:
        """Enter a batch's output and error files, of which OpenAI's clients ask for the contents."""
        await self.forget_results(job)
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
        query = f"SELECT {_FIELDS} FROM files WHERE {_KEPT_JOBS} ORDER BY created_unix_s DESC, id"
        return await self._database.read(lambda c: [_record(row) for row in c.execute(query)])

    async def one(self, file_id: str) -> FileRecord:
        """One.

        Raises:
            JobNotFound: There is none of this id.
        """
        query = f"SELECT {_FIELDS} FROM files WHERE {_KEPT_JOBS} AND id = ?"
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

    async def forget_results(self, job: Job) -> None:
        """A job is no longer at its end, so its results are not whole."""
        await self._database.write(
            lambda c: c.execute("DELETE FROM files WHERE job = ?", (job.key,))
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

    async def _write(self, file_id: str, path: Path, chunks: AsyncIterator[bytes]) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        query = "SELECT coalesce(sum(size_bytes), 0) FROM files WHERE job IS NULL"
        kept_bytes = await self._database.read(lambda c: c.execute(query).fetchone()[0])
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
                self._arriving[file_id] = size_bytes
                self._check_room(kept_bytes + sum(self._arriving.values()), len(chunk))
                await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(_sync, file)
        return size_bytes

    def _check_room(self, all_bytes: int, more_bytes: int) -> None:
        if all_bytes > MAX_UPLOADS_BYTES:
            raise UploadTooLarge(
                f"All uploaded files together would have more than {MAX_UPLOADS_BYTES >> 20} MB; "
                "delete some that are not needed any more (DELETE /v1/files/ID).",
                param="file",
            )
        if shutil.disk_usage(self._folder).free < more_bytes + self._disk_free_bytes():
            raise DiskFull(
                f"The disk that holds {self._folder} has no more space than Shoal shall leave "
                "free; free some, or leave less of it free (limits.disk_free_bytes)."
            )


def _remove_strays(folder: Path, known: Collection[str]) -> None:
    """Remove files of ours that have no entry: a kill came between them."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        stem = path.name.removeprefix(".").removesuffix(".new")
        if _NAME.fullmatch(path.name) and stem not in known:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                logger.warning("a left-over upload stays: %s", error)


def _sync(file: BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())


def _record(row: sqlite3.Row) -> FileRecord:
    return FileRecord(**{**row, "has_failures": bool(row["has_failures"])})
