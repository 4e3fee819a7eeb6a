"""Uploads: what is kept of them, how much, and for how long."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.core.errors import DiskFull
from engine.jobs import files as files_module
from engine.jobs.files import KEPT_S, Files, UploadTooLarge
from engine.jobs.job_table import JobNotFound
from engine.jobs.records import JobSpec
from engine.jobs.store import JobStore
from engine.localapi.jobs import JobState
from engine.storage.database import Database
from tests.support.movable_clock import MovableClock
from tests.support.small_disk import small_disk


class Uploads:
    """Files without an API."""

    def __init__(self, folder: Path, database: Database, clock: MovableClock) -> None:
        self.folder, self.database, self.clock = folder, database, clock
        self.store = JobStore(database, clock)
        self.disk_free_bytes = 0
        self.files = Files(
            folder, database, self.store, clock, disk_free_bytes=lambda: self.disk_free_bytes
        )

    async def add(self, size: int) -> str:
        return (await self.files.add("in.jsonl", "batch", chunks(size))).id

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


async def chunks(size: int) -> AsyncIterator[bytes]:
    while size > 0:
        yield bytes(min(size, 1 << 16))
        size -= 1 << 16


@pytest.fixture
async def uploads(tmp_path: Path) -> AsyncIterator[Uploads]:
    clock = MovableClock()
    database = await Database.open(tmp_path / "shoal.sqlite3", clock)
    yield Uploads(tmp_path / "files", database, clock)
    await database.close()


async def test_all_uploads_together_have_a_limit(uploads, monkeypatch):
    monkeypatch.setattr(files_module, "MAX_UPLOADS_BYTES", 3 << 16)
    first = await uploads.add(2 << 16)
    with pytest.raises(UploadTooLarge, match="delete some that are not needed"):
        await uploads.add(2 << 16)
    assert uploads.names() == {first}
    await uploads.files.delete(first)
    await uploads.add(2 << 16)


async def test_uploads_leave_as_much_of_the_disk_free_as_the_person_wants(uploads, tmp_path):
    uploads.disk_free_bytes = shutil.disk_usage(tmp_path).total
    with pytest.raises(DiskFull, match="leave less of it free"):
        await uploads.add(10)
    assert uploads.names() == set()
    uploads.disk_free_bytes = 0
    await uploads.add(10)


async def test_an_upload_that_fills_the_disk_leaves_nothing(uploads, tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        files = Files(disk.folder / "files", uploads.database, uploads.store, uploads.clock)
        with pytest.raises(DiskFull, match="no more space"):
            await files.add("in.jsonl", "batch", chunks(2 << 20))
        assert list((disk.folder / "files").iterdir()) == []
    assert await files.all() == []


async def test_an_upload_is_kept_for_a_month_and_as_long_as_a_job_has_to_read_it(uploads):
    unread, read, unused = [await uploads.add(10) for _ in range(3)]
    for file_id, state in ((unread, JobState.VALIDATING), (read, JobState.COMPLETED)):
        spec = JobSpec(input_file_id=file_id, input_name="in.jsonl", max_rows=10)
        job = await uploads.store.create(spec, "in.jsonl", 0)
        await uploads.store.change(job.key, state=state)
    uploads.clock.ahead_s = KEPT_S - 60
    await uploads.files.tidy()
    assert uploads.names() == {unread, read, unused}
    uploads.clock.ahead_s = KEPT_S + 60
    await uploads.files.tidy()
    assert uploads.names() == {unread}
    assert [record.id for record in await uploads.files.all()] == [unread]
    with pytest.raises(JobNotFound):
        await uploads.files.one(unused)


async def test_what_a_killed_engine_left_of_an_upload_goes_and_nothing_else(uploads):
    kept = await uploads.add(10)
    half, whole = ".file-0123456789abcdef01234567.new", "file-0123456789abcdef01234567"
    others = {"notes.txt", "file-of-mine", ".file-old.new"}
    for name in (half, whole, *others):
        (uploads.folder / name).write_bytes(b"x")
    await uploads.files.tidy()
    assert uploads.names() == {kept, *others}


async def test_an_upload_under_way_is_not_taken_for_a_left_over(uploads):
    async def slow() -> AsyncIterator[bytes]:
        yield b"one"
        await uploads.files.tidy()
        yield b"two"

    record = await uploads.files.add("in.jsonl", "batch", slow())
    assert uploads.files.path(record.id).read_bytes() == b"onetwo"
