"""Files that clients have uploaded, one on disk for each entry in the store."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from io import BufferedWriter
from pathlib import Path
from typing import Final

from engine.core.clock import Clock
from engine.core.errors import RequestError
from engine.jobs.output import output_error
from engine.jobs.records import FileRecord
from engine.jobs.store import JobStore

MAX_UPLOAD_BYTES: Final = 200 << 20
"""As OpenAI has it."""


class UploadTooLarge(RequestError):
    """A file beyond the limit."""

    code = "file_too_large"


class Uploads:
    """The files' folder."""

    def __init__(self, folder: Path, store: JobStore, clock: Clock) -> None:
        self._folder = folder
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
        await self._store.add_file(record)
        return record

    async def delete(self, file_id: str) -> None:
        """Delete a file and its entry.

        Raises:
            JobNotFound: There is none of this id.
        """
        record = await self._store.file(file_id)
        await self._store.delete_file(file_id)
        if record.job is None:
            await asyncio.to_thread(self.path(file_id).unlink, missing_ok=True)

    def path(self, file_id: str) -> Path:
        """Where the contents of a file in the store lie."""
        return self._folder / file_id

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
