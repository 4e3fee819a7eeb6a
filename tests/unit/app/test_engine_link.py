"""The link against a small engine with the real API, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pytestqt.qtbot import QtBot

from app.engine_link import EngineLink
from app.messages import (
    ChatEnded,
    ChatFailed,
    ChatToken,
    CommandDone,
    CommandFailed,
    ConnectionLost,
    Ending,
    Message,
    StatusArrived,
)
from app.state import Role, Turn
from engine.core.clock import SystemClock
from engine.localapi.running import Home, find_running, read_token
from engine.localapi.schema import PauseRequest, ReadyFile
from tests.support.desktop.screen import wait_until
from tests.support.fake_engine import ANSWER

M = TypeVar("M")
QUESTION = [Turn(0, Role.USER, "Why?")]


class Engine:
    """A fake engine that runs."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.home = Home.under(folder)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fake_engine", *arguments],
            env=os.environ | {"SHOAL_HOME": str(folder)},
        )
        self.ready: ReadyFile = wait_until(lambda: find_running(self.home), 20, "the engine")

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            self.ready.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {read_token(Path(self.ready.token_file))}"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Heard:
    """A link and all its messages."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot = qtbot
        self.link = EngineLink(SystemClock())
        self.messages: list[Message] = []
        self.link.message.connect(self.messages.append)

    def all(self, kind: type[M]) -> list[M]:
        return [message for message in self.messages if isinstance(message, kind)]

    def wait(self, kind: type[M], count: int = 1) -> M:
        self.qtbot.waitUntil(lambda: len(self.all(kind)) >= count, timeout=8000)
        return self.all(kind)[-1]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    running = Engine(tmp_path, "--tokens-per-s", "200")
    yield running
    running.kill()


@pytest.fixture
def heard(qtbot: QtBot) -> Iterator[Heard]:
    one = Heard(qtbot)
    yield one
    one.link.close()
    one.link.deleteLater()


def test_link_tells_the_state_holds_the_lease_and_hears_changes(
    heard: Heard, engine: Engine
) -> None:
    heard.link.open(engine.ready)
    assert heard.wait(StatusArrived).status.state == "idle"
    assert engine.call("/fake")["leases"] == 1
    engine.call("/fake", {"status": {"state": "serving", "sessions": 1}})
    assert heard.wait(StatusArrived, 2).status.state == "serving"


def test_closed_link_gives_the_lease_back(heard: Heard, engine: Engine) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.link.close()
    heard.qtbot.waitUntil(lambda: engine.call("/fake")["leases"] == 0, timeout=3000)


def test_pause_and_resume_reach_the_engine(heard: Heard, engine: Engine) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.link.pause(PauseRequest(seconds=3600))
    heard.wait(CommandDone)
    assert heard.all(StatusArrived)[-1].status.state == "paused"
    heard.link.resume()
    heard.wait(CommandDone, 2)
    heard.link.pause(PauseRequest(finish_first=True))
    heard.wait(CommandDone, 3)
    asked = engine.call("/fake")
    assert (asked["pauses"], asked["resumes"]) == ([{"seconds": 3600}, {"finish_first": True}], 1)


def test_answer_arrives_token_by_token_with_the_engines_count(heard: Heard, engine: Engine) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.link.ask(QUESTION)
    end = heard.wait(ChatEnded)
    tokens = heard.all(ChatToken)
    assert "".join(token.text for token in tokens) == ANSWER
    assert end == ChatEnded(Ending.COMPLETE, len(tokens))
    assert tokens[-1].at_s > tokens[0].at_s
    body = engine.call("/fake")["chats"][0]
    assert body["messages"] == [{"role": "user", "content": "Why?"}]
    assert body["stream"] is True


def test_stop_closes_the_connection_so_that_the_engine_notices(
    heard: Heard, tmp_path: Path
) -> None:
    slow = Engine(tmp_path, "--tokens-per-s", "10")
    try:
        heard.link.open(slow.ready)
        heard.wait(StatusArrived)
        heard.link.ask(QUESTION)
        heard.wait(ChatToken)
        heard.link.stop()
        assert heard.wait(ChatEnded).ending is Ending.STOPPED
        heard.qtbot.waitUntil(lambda: slow.call("/fake")["aborted"] == 1, timeout=3000)
        assert len(heard.all(ChatEnded)) == 1
    finally:
        heard.link.close()
        slow.kill()


def test_refused_chat_gives_the_engines_sentence(heard: Heard, engine: Engine) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    engine.call("/fake", {"fail_chat": {"message": "No node holds blocks 3–5; wait for one."}})
    heard.link.ask(QUESTION)
    assert heard.wait(ChatFailed).message == "No node holds blocks 3–5; wait for one."


def test_answer_that_breaks_off_gives_the_engines_sentence(heard: Heard, engine: Engine) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    engine.call("/fake", {"fail_chat": {"message": "The stage is gone.", "after_tokens": 3}})
    heard.link.ask(QUESTION)
    assert heard.wait(ChatFailed).message == "The stage is gone."
    assert len(heard.all(ChatToken)) == 3
    assert not heard.all(ChatEnded)


def test_engine_that_dies_during_an_answer_fails_it_and_the_link_seeks_on(
    heard: Heard, engine: Engine, tmp_path: Path
) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.link.ask(QUESTION)
    heard.wait(ChatToken)
    engine.kill()
    assert "broke" in heard.wait(ChatFailed).message
    heard.wait(ConnectionLost, 3)


def test_engine_with_another_token_is_refused_in_its_own_words(
    heard: Heard, engine: Engine, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong-token"
    wrong.write_text("guess")
    heard.link.open(engine.ready.model_copy(update={"token_file": str(wrong)}))
    assert heard.wait(ConnectionLost).reason == "The access token is wrong."
    wrong.write_text(read_token(engine.home.token_file))
    heard.wait(StatusArrived)


def test_orders_without_an_engine_fail_at_once(heard: Heard) -> None:
    heard.link.pause(PauseRequest())
    heard.link.ask(QUESTION)
    assert len(heard.all(CommandFailed)) == 1
    assert len(heard.all(ChatFailed)) == 1
    assert not heard.link.quit_engine()
