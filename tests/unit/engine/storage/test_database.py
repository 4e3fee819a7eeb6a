"""The database survives what happens to files: kills, damage, full disks, other versions."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from engine.chats import conversations, messages
from engine.core.clock import SystemClock
from engine.core.errors import DatabaseTooNew, DiskFull, StorageError
from engine.localapi.chats import ChatSettings, NewMessage
from engine.localapi.running import Home
from engine.storage.database import Database
from engine.storage.migrations import MIGRATIONS, Migration

NOTES = Migration("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",))
AUTHORS = Migration(
    "authors of notes",
    (
        "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
        "INSERT INTO author VALUES (1, 'unknown')",
        "ALTER TABLE note ADD COLUMN author INTEGER REFERENCES author",
        "UPDATE note SET author = 1",
    ),
)
BROKEN = Migration("what cannot be", ("DELETE FROM note", "CREATE TABLE note (id INTEGER)"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "shoal.sqlite3"


@asynccontextmanager
async def opened(
    path: Path, migrations: Sequence[Migration] = (NOTES,), *, rolled_back: bool = False
) -> AsyncIterator[Database]:
    database = await Database.open(path, SystemClock(), migrations, rolled_back=rolled_back)
    try:
        yield database
    finally:
        await database.close()


async def add(database: Database, text: str) -> None:
    await database.write(lambda c: c.execute("INSERT INTO note (text) VALUES (?)", (text,)))


async def texts(database: Database) -> list[str]:
    rows = await database.read(lambda c: c.execute("SELECT text FROM note ORDER BY id").fetchall())
    return [row["text"] for row in rows]


async def test_what_was_written_is_there_at_once_and_after_reopening(path):
    async with opened(path) as database:
        await add(database, "herring")
        assert await texts(database) == ["herring"]
    async with opened(path) as database:
        assert await texts(database) == ["herring"]
        assert database.aside.damaged is None


async def test_an_error_in_a_write_undoes_all_of_it(path):
    async with opened(path) as database:

        def half(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO note (text) VALUES ('half')")
            raise ValueError

        with pytest.raises(ValueError):
            await database.write(half)
        assert await texts(database) == []
        await add(database, "whole")
        assert await texts(database) == ["whole"]


async def test_other_users_of_the_machine_cannot_read_it(path):
    async with opened(path) as database:
        await add(database, "herring")
        files = list(path.parent.iterdir())
        assert len(files) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize("known", range(1, len(MIGRATIONS) + 1))
async def test_a_database_of_each_version_is_brought_to_the_present_one(path, known):
    async with opened(path, MIGRATIONS[:known]):
        pass
    async with opened(path, MIGRATIONS) as old, opened(path.with_name("new"), MIGRATIONS) as new:
        schema = "SELECT name, sql FROM sqlite_schema ORDER BY name"
        tables = [
            [tuple(row) for row in await database.read(lambda c: c.execute(schema).fetchall())]
            for database in (old, new)
        ]
        assert tables[0] == tables[1]


async def test_a_migration_keeps_what_is_there_and_a_copy_of_the_file_before_it(path):
    async with opened(path) as database:
        await add(database, "herring")
    async with opened(path, [NOTES, AUTHORS]) as database:
        query = "SELECT text, name FROM note JOIN author ON author.id = note.author"
        rows = await database.read(lambda c: c.execute(query).fetchall())
        assert [tuple(row) for row in rows] == [("herring", "unknown")]
    copy = path.with_name("shoal.version-1.sqlite3")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    async with opened(copy) as before:
        assert await texts(before) == ["herring"]


@pytest.mark.parametrize("known", range(1, len(MIGRATIONS)))
async def test_conversations_are_copied_before_any_change_of_the_database(path, known):
    async with opened(path, MIGRATIONS[:known]) as database:
        chat = await database.write(
            lambda c: conversations.create(c, ChatSettings(title="Herrings"), 1.0)
        )
        await database.write(
            lambda c: messages.say(c, chat.id, NewMessage(parent=None, text="Why?"), 1.0)
        )
    async with opened(path, MIGRATIONS) as database:
        assert await said(database, chat.id) == ["Why?"]
    copy = path.with_name(f"shoal.version-{known}.sqlite3")
    async with opened(copy, MIGRATIONS[:known]) as before:
        assert await said(before, chat.id) == ["Why?"]


async def said(database: Database, chat: int) -> list[str]:
    page = await database.read(lambda c: messages.page(c, chat, before=None, limit=9))
    return [message.text for message in page.messages]


def test_conversations_live_among_the_persons_data_and_never_in_a_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("SHOAL_HOME")
    for name in ("DATA", "CACHE", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    home = Home.from_environment()
    assert home.database_file.is_relative_to(tmp_path / "DATA")
    assert home.cache_dir.is_relative_to(tmp_path / "CACHE")


async def test_a_migration_that_fails_leaves_the_database_as_it_was(path):
    async with opened(path) as database:
        await add(database, "herring")
    with pytest.raises(StorageError):
        await Database.open(path, SystemClock(), [NOTES, AUTHORS, BROKEN])
    async with opened(path) as database:
        assert await texts(database) == ["herring"]


async def test_a_database_of_a_newer_version_is_refused_and_left_untouched(path):
    async with opened(path, [NOTES, AUTHORS]):
        pass
    before = path.read_bytes()
    with pytest.raises(DatabaseTooNew, match="newer version of Shoal"):
        await Database.open(path, SystemClock(), [NOTES])
    assert path.read_bytes() == before


async def test_the_copy_is_used_again_when_the_version_that_changed_the_database_did_not_start(
    path,
):
    async with opened(path) as database:
        await add(database, "herring")
    async with opened(path, [NOTES, AUTHORS]) as database:
        await add(database, "written by the version that failed")
    async with opened(path, rolled_back=True) as database:
        assert await texts(database) == ["herring"]
        await add(database, "cod")
        newer = database.aside.newer
    async with opened(newer, [NOTES, AUTHORS]) as kept:
        assert await texts(kept) == ["herring", "written by the version that failed"]
    async with opened(path, rolled_back=True) as database:  # the next start changes nothing
        assert await texts(database) == ["herring", "cod"]
        assert database.aside.newer is None


async def test_going_back_can_be_cut_off_between_its_steps(path):
    async with opened(path) as database:
        await add(database, "herring")
    async with opened(path, [NOTES, AUTHORS]):
        pass
    path.rename(path.with_name("aside"))
    async with opened(path, rolled_back=True) as database:
        assert await texts(database) == ["herring"]


async def test_a_version_that_failed_and_changed_nothing_costs_nothing(path):
    async with opened(path) as database:
        await add(database, "herring")
    async with opened(path, rolled_back=True) as database:
        assert await texts(database) == ["herring"]


@pytest.mark.parametrize("damage", ["not a database", "torn page", "cut short"])
async def test_a_damaged_database_is_kept_aside_and_a_new_one_begun(path, damage):
    async with opened(path) as database:
        await database.write(
            lambda c: c.executemany(
                "INSERT INTO note (text) VALUES (?)", [(f"{n} " * 9,) for n in range(2000)]
            )
        )
    whole = path.read_bytes()
    broken = {
        "not a database": b"\x00\xff shoals of herring" * 1000,
        "torn page": whole[:4096] + os.urandom(4096) + whole[8192:],
        "cut short": whole[: len(whole) // 2],
    }[damage]
    path.write_bytes(broken)
    async with opened(path) as database:
        assert database.aside.damaged is not None
        assert database.aside.damaged.read_bytes() == broken
        assert database.aside.damaged.parent == path.parent
        assert await texts(database) == []
        await add(database, "herring")
    async with opened(path) as database:
        assert database.aside.damaged is None
        assert await texts(database) == ["herring"]


async def test_a_full_disk_is_said_clearly_and_nothing_is_half_written(path):
    async with opened(path) as database:
        await add(database, "herring")
        await database.write(lambda c: c.execute("PRAGMA max_page_count = 5"))
        with pytest.raises(DiskFull, match="is full") as full:
            await add(database, "x" * 100_000)
        assert full.value.retryable
        await database.write(lambda c: c.execute("PRAGMA max_page_count = 1000"))
        await add(database, "cod")
        assert await texts(database) == ["herring", "cod"]


async def test_a_place_that_cannot_be_written_is_one_clear_sentence(tmp_path):
    (tmp_path / "file").touch()
    for path in (Path("/proc/shoal.sqlite3"), tmp_path / "file" / "shoal.sqlite3"):
        with pytest.raises(StorageError, match="set SHOAL_HOME to another folder"):
            await Database.open(path, SystemClock(), [NOTES])


async def test_a_read_only_file_is_refused(path):
    async with opened(path):
        pass
    # Permissions do not bind every user; a database that SQLite opens read-only does.
    with pytest.raises(StorageError, match="cannot write its database"):
        async with opened(path) as database:
            await database.read(lambda c: c.execute("INSERT INTO note (text) VALUES ('no')"))


KILLED_WRITER = """
import asyncio, sys
from pathlib import Path
from engine.core.clock import SystemClock
from engine.storage.database import Database
from tests.unit.engine.storage.test_database import NOTES, add

async def main():
    database = await Database.open(Path(sys.argv[1]), SystemClock(), [NOTES])
    for number in range(1_000_000):
        await add(database, f"{number}")
        print(number, flush=True)

asyncio.run(main())
"""


async def test_what_was_acknowledged_survives_a_kill_in_the_middle_of_writing(path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == 50:
                break
        writer.send_signal(signal.SIGKILL)
        acknowledged = [50, *(int(line) for line in writer.stdout if line.endswith("\n"))]
    async with opened(path) as database:
        assert database.aside.damaged is None
        kept = [int(text) for text in await texts(database)]
    assert kept == list(range(len(kept)))
    assert len(kept) > acknowledged[-1]


async def test_the_closed_file_is_one_file(path):
    async with opened(path) as database:
        await add(database, "herring")
    assert list(path.parent.iterdir()) == [path]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT text FROM note").fetchone() == ("herring",)
