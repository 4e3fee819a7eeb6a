"""The log says what went wrong and where, and nothing that a person has written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.localapi.running import Home
from engine.node.logs import log_stray_error, log_to_file

SECRET = "my diary"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home.under(tmp_path)
    handler = log_to_file(home, debug=False)
    yield home
    logging.getLogger("engine").removeHandler(handler)
    handler.close()


def answer(text: str) -> None:
    try:
        int(text)
    except ValueError as error:
        raise RuntimeError(f"cannot answer {text}") from error


async def test_error_that_nobody_awaits_is_logged_by_kind_and_place(home: Home) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_stray_error)
    loop.call_soon(answer, SECRET)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    logged = home.log_file.read_text()
    assert SECRET not in logged
    assert "RuntimeError, raised in" in logged
    assert "ValueError, raised in" in logged
    assert f"{Path(__file__).name}:{answer.__code__.co_firstlineno + 4} (answer)" in logged


def test_no_error_that_is_logged_shows_its_text(home: Home) -> None:
    try:
        answer(SECRET)
    except RuntimeError:
        logging.getLogger("engine.somewhere").exception("a chat could not be answered")
    logged = home.log_file.read_text()
    assert "a chat could not be answered\nRuntimeError, raised in" in logged
    assert SECRET not in logged


async def test_trouble_without_an_error_is_logged_as_it_is(home: Home) -> None:
    log_stray_error(asyncio.get_running_loop(), {"message": "Task was destroyed."})
    assert "Task was destroyed." in home.log_file.read_text()
