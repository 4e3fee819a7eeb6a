"""The link against a small engine with the real API, in a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PySide6.QtNetwork import QNetworkProxy
from pytestqt.qtbot import QtBot

from app.chat_messages import (
    AnswerBegun,
    AnswerEnded,
    AnswerGrew,
    AnswerLost,
    ChatDeleted,
    ChatNotOpened,
    ChatOpened,
    ChatRefused,
    ChatRestored,
    ChatSettled,
    ChatsListed,
    DraftCounted,
    OlderArrived,
    PresetsListed,
)
from app.engine_link.api import Api
from app.engine_link.chats import ChatLink
from app.engine_link.engine import EngineLink
from app.engine_link.past import PastLink
from app.messages import (
    CommandDone,
    CommandFailed,
    ConnectionLost,
    Message,
    StatusArrived,
)
from app.past_messages import LogArrived, PreviewArrived, StatisticsArrived, StatisticsFailed
from engine.core.clock import SystemClock
from engine.localapi.chats import (
    AnswerRequest,
    ChatChange,
    ChatSettings,
    Ending,
    NewMessage,
    PresetSettings,
)
from engine.localapi.running import Home, find_running, read_token
from engine.localapi.schema import PauseRequest, ReadyFile
from engine.localapi.statistics import Range
from tests.support.desktop.screen import wait_until
from tests.support.fake_engine import ANSWER

M = TypeVar("M")
QUESTION = AnswerRequest(say=NewMessage(text="Why?"))


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
        api = Api()
        self.link = EngineLink(api)
        self.chats = ChatLink(api, SystemClock(), self.link)
        self.past = PastLink(api, self.link)
        api.setParent(self.link)
        self.messages: list[Message] = []
        self.link.message.connect(self.messages.append)
        self.chats.message.connect(self.messages.append)
        self.past.message.connect(self.messages.append)

    def ask(self, wanted: AnswerRequest, chat: int | None = None) -> None:
        self.chats.ask(chat, ChatSettings(), wanted)

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


def test_link_to_this_computer_passes_no_proxy(heard: Heard, engine: Engine) -> None:
    nobody = QNetworkProxy(QNetworkProxy.ProxyType.HttpProxy, "127.0.0.1", 1)
    before = QNetworkProxy.applicationProxy()
    QNetworkProxy.setApplicationProxy(nobody)
    try:
        heard.link.open(engine.ready)
        assert heard.wait(StatusArrived).status.state == "idle"
    finally:
        QNetworkProxy.setApplicationProxy(before)


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


def test_answer_arrives_token_by_token_in_a_conversation_of_its_own(
    heard: Heard, engine: Engine
) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.ask(QUESTION)
    end = heard.wait(AnswerEnded)
    begun = heard.all(AnswerBegun)[0]
    assert begun.question is not None
    assert begun.question.text == "Why?"
    grown = heard.all(AnswerGrew)
    assert "".join(more.text for more in grown) == ANSWER == end.answer.text
    assert grown[-1].at_s > grown[0].at_s
    heard.wait(ChatSettled, 2)
    assert heard.all(ChatSettled)[-1].info.title == "Why?"


def test_stop_reaches_the_engine_which_keeps_what_there_is(heard: Heard, tmp_path: Path) -> None:
    slow = Engine(tmp_path, "--tokens-per-s", "10")
    try:
        heard.link.open(slow.ready)
        heard.wait(StatusArrived)
        heard.ask(QUESTION)
        chat = heard.wait(AnswerGrew).chat
        heard.chats.stop(chat)
        end = heard.wait(AnswerEnded)
        assert end.answer.ending is Ending.STOPPED
        assert end.answer.text
        assert not heard.all(AnswerLost)
    finally:
        heard.link.close()
        slow.kill()


def test_refused_question_gives_the_engines_sentence(heard: Heard, engine: Engine) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    engine.call("/fake", {"fail_chat": {"message": "No node holds blocks 3–5; wait for one."}})
    heard.ask(QUESTION)
    assert heard.wait(AnswerLost).message == "No node holds blocks 3–5; wait for one."


def test_engine_that_dies_during_an_answer_loses_it_and_the_link_seeks_on(
    heard: Heard, engine: Engine
) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.ask(QUESTION)
    heard.wait(AnswerGrew)
    engine.kill()
    assert "broke" in heard.wait(AnswerLost).message
    heard.wait(ConnectionLost, 3)


def test_conversation_is_opened_renamed_deleted_and_brought_back(
    heard: Heard, engine: Engine
) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.ask(QUESTION)
    chat = heard.wait(AnswerEnded).chat
    heard.chats.open(chat)
    assert [m.text for m in heard.wait(ChatOpened).page.messages] == ["Why?", ANSWER]
    heard.chats.change(chat, ChatChange(title="Fish & chips?"))
    heard.qtbot.waitUntil(lambda: heard.all(ChatSettled)[-1].info.title == "Fish & chips?")
    heard.chats.list("fish & chips")
    found = heard.wait(ChatsListed)
    assert [known.id for known in found.found.chats] == [chat]
    assert engine.call("/fake")["searches"] == ["fish & chips"]
    heard.chats.delete(chat)
    assert heard.wait(ChatDeleted).info.id == chat
    heard.chats.restore(chat)
    assert not heard.wait(ChatRestored).info.deleted
    exported: list[bytes] = []
    heard.chats.export(chat, "json", exported.append)
    heard.qtbot.waitUntil(lambda: bool(exported))
    assert len(json.loads(exported[0])["messages"]) == 2


def test_long_conversation_comes_in_pages(heard: Heard, tmp_path: Path) -> None:
    long = Engine(tmp_path, "--messages", "200")
    try:
        heard.link.open(long.ready)
        heard.wait(StatusArrived)
        heard.chats.open(1)
        page = heard.wait(ChatOpened).page
        assert page.messages[-1].text == "message 199"
        assert page.more
        heard.chats.older(1, page.messages[0].id)
        older = heard.wait(OlderArrived).page
        assert older.messages[-1].id == page.messages[0].parent
    finally:
        heard.link.close()
        long.kill()


def test_presets_and_drafts_are_the_engines(heard: Heard, engine: Engine) -> None:
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.chats.put_preset("Brief/one", PresetSettings(system_prompt="Be brief."))
    assert [preset.name for preset in heard.wait(PresetsListed).presets] == ["Brief/one"]
    heard.chats.delete_preset("Brief/one")
    assert heard.wait(PresetsListed, 2).presets == ()
    heard.chats.count(("two words", "and three more"))
    assert heard.wait(DraftCounted) == DraftCounted(5, 8192)


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
    heard.ask(QUESTION)
    heard.chats.open(1)
    heard.chats.delete(1)
    for kind in (CommandFailed, AnswerLost, ChatNotOpened, ChatRefused):
        assert len(heard.all(kind)) == 1
    assert not heard.link.quit_engine()


def test_history_log_and_diagnostics_arrive(heard: Heard, engine: Engine, qtbot: QtBot) -> None:
    heard.past.statistics(Range.HOUR)
    heard.wait(StatisticsFailed)  # no engine yet
    heard.link.open(engine.ready)
    heard.wait(StatusArrived)
    heard.past.statistics(Range.WEEK)
    assert heard.wait(StatisticsArrived).statistics.range is Range.WEEK
    heard.past.log()
    assert heard.wait(LogArrived).lines == ("Shoal begins", "Shoal serves")
    heard.past.preview()
    files = heard.wait(PreviewArrived).preview.entries
    assert [entry.name for entry in files] == ["machine.json", "engine.log"]
    saved: list[bytes] = []
    heard.past.archive(saved.append)
    qtbot.waitUntil(lambda: bool(saved), timeout=8000)
    with zipfile.ZipFile(io.BytesIO(saved[0])) as packed:
        assert packed.read("shoal-diagnostics/engine.log") == b"Shoal begins"
