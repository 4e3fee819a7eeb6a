"""The engine on a database that it cannot use as it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.localapi.launch import EngineFailed, start_engine
from engine.localapi.running import Home
from tests.support.real_engine import READY_S, real_engine
from tests.support.tiny_models import save_tiny, save_tokenizer

pytestmark = pytest.mark.end2end


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    save_tiny("llama", tmp_path / "tiny")
    save_tokenizer(tmp_path / "tiny")
    return str(tmp_path / "tiny")


def test_a_newer_database_is_left_alone_and_the_engine_says_what_to_do(
    tmp_path: Path, tiny: str
) -> None:
    home = Home.under(tmp_path)
    home.data_dir.mkdir(parents=True)
    with closing(sqlite3.connect(home.database_file)) as connection:
        connection.execute("CREATE TABLE of_the_future (x)")
        connection.execute("PRAGMA user_version = 999")
    before = home.database_file.read_bytes()
    process = start_engine(["--model", tiny], home, leased=False)
    try:
        with pytest.raises(EngineFailed) as failed:
            process.wait_ready(READY_S)
    finally:
        process.end()
    assert str(failed.value) == (
        f"{home.database_file} was written by a newer version of Shoal and stays as it is; update "
        "Shoal, or let SHOAL_HOME name another folder."
    )
    assert process.process.returncode == 1
    assert home.database_file.read_bytes() == before


def test_a_damaged_database_is_kept_aside_and_the_person_is_told(tmp_path: Path, tiny: str) -> None:
    home = Home.under(tmp_path)
    home.data_dir.mkdir(parents=True)
    broken = b"SQLite format 3\0" + bytes(range(256)) * 64
    home.database_file.write_bytes(broken)
    with real_engine(tmp_path, "--model", tiny) as engine:
        (notice,) = engine.status()["notices"]
        (kept,) = home.data_dir.glob("shoal.damaged-*.sqlite3")
        assert "was damaged, so Shoal began a new one" in notice
        assert str(kept) in notice
        assert kept.read_bytes() == broken
        assert engine.api.call("GET", "/shoal/v1/chats")["chats"] == []
        engine.api.call("POST", "/shoal/v1/chats", {"title": "After it"})
    with real_engine(tmp_path, "--model", tiny) as engine:
        assert engine.status()["notices"] == []
        assert engine.api.call("GET", "/shoal/v1/chats")["chats"][0]["title"] == "After it"
