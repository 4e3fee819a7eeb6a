from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.engine_process import MAX_CRASHES, EngineProcess, EngineStart
from app.messages import EngineCrashed, EngineFound, EngineStarting, EngineStopped, Message
from engine.localapi.running import Home, find_running
from engine.localapi.schema import ReadyFile
from engine.localapi.versions import RESTART_EXIT
from tests.support.desktop.screen import wait_until

ENGINE = (sys.executable, "-m", "tests.support.fake_engine")


class Watched:
    """An engine process and all that it told."""

    def __init__(self, qtbot: QtBot, home: Home, command: tuple[str, ...]) -> None:
        self.qtbot = qtbot
        self.messages: list[Message] = []
        self.ready: list[ReadyFile] = []
        self.process = EngineProcess(home, EngineStart(command, home))
        self.process.message.connect(self.messages.append)
        self.process.ready.connect(self.ready.append)

    def kinds(self) -> list[type]:
        return [type(message) for message in self.messages]

    def wait_ready(self, count: int = 1) -> ReadyFile:
        self.qtbot.waitUntil(lambda: len(self.ready) >= count, timeout=20_000)
        return self.ready[-1]

    def end(self) -> None:
        with self.qtbot.waitSignal(self.process.ended, timeout=15_000):
            self.process.end(asked=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path))
    return Home.under(tmp_path)


@pytest.fixture
def watched(qtbot: QtBot, home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr("app.engine_process.RESTART_DELAYS_S", (0.01,) * 4)
    one = Watched(qtbot, home, ENGINE)
    yield one
    one.end()
    one.process.deleteLater()


def test_engine_is_started_leased_and_ends_with_us(watched: Watched, home: Home) -> None:
    watched.process.start()
    ready = watched.wait_ready()
    assert watched.process.is_ours
    command = psutil.Process(ready.pid).cmdline()
    assert "--leased" in command
    watched.end()
    assert not psutil.pid_exists(ready.pid)
    assert not list(home.state_dir.glob("engine-of-app-*"))


def test_running_engine_is_used_and_left_alone(watched: Watched, home: Home) -> None:
    service = subprocess.Popen(ENGINE, env=os.environ.copy())
    try:
        wait_until(lambda: find_running(home), 20, "the service")
        watched.process.start()
        assert watched.kinds() == [EngineFound]
        assert watched.wait_ready().pid == service.pid
        assert not watched.process.is_ours
        watched.end()
        assert service.poll() is None
    finally:
        service.kill()
        service.wait()


def test_found_engine_that_was_never_there_is_replaced(watched: Watched, home: Home) -> None:
    home.state_dir.mkdir(parents=True)
    stale = ReadyFile(url="http://127.0.0.1:9", token_file="x", pid=os.getpid())
    home.running_file.write_text(stale.model_dump_json())
    watched.process.start()
    assert watched.kinds() == [EngineFound]
    watched.process.link_lost()
    assert watched.wait_ready(2).pid != os.getpid()
    assert watched.kinds() == [EngineFound, EngineStarting]


def test_killed_engine_is_started_again(watched: Watched) -> None:
    watched.process.start()
    first = watched.wait_ready()
    psutil.Process(first.pid).kill()
    assert watched.wait_ready(2).pid != first.pid
    assert watched.kinds() == [EngineStarting, EngineCrashed, EngineStarting]


def test_engine_that_keeps_failing_is_given_up_with_its_own_reason_until_asked(
    qtbot: QtBot, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine_process.RESTART_DELAYS_S", (0.01,) * 4)
    failing = "import sys; sys.stderr.write('noise\\nshoal: No memory; close programs.\\n'); raise SystemExit(1)"
    watched = Watched(qtbot, home, (sys.executable, "-S", "-c", failing))
    watched.process.start()
    qtbot.waitUntil(lambda: EngineStopped in watched.kinds(), timeout=20_000)
    assert watched.kinds().count(EngineStarting) == MAX_CRASHES
    stopped = watched.messages[-1]
    assert isinstance(stopped, EngineStopped)
    assert stopped.reason == (
        f"It ended 5 times in a row. No memory; close programs. The log is {home.log_file}."
    )
    watched.process.start()
    qtbot.waitUntil(lambda: watched.kinds().count(EngineStarting) > MAX_CRASHES, timeout=5000)
    watched.end()


def test_wrong_usage_is_not_tried_again(qtbot: QtBot, home: Home) -> None:
    watched = Watched(qtbot, home, (sys.executable, "-S", "-c", "raise SystemExit(2)"))
    watched.process.start()
    qtbot.waitUntil(lambda: EngineStopped in watched.kinds(), timeout=20_000)
    assert watched.kinds() == [EngineStarting, EngineStopped]


def test_engine_that_was_asked_to_end_is_not_brought_back(qtbot: QtBot, home: Home) -> None:
    watched = Watched(qtbot, home, (sys.executable, "-S", "-c", "raise SystemExit(0)"))
    watched.process.start()
    qtbot.waitUntil(lambda: EngineStopped in watched.kinds(), timeout=20_000)
    assert watched.kinds() == [EngineStarting, EngineStopped]


def test_missing_program_is_told(qtbot: QtBot, home: Home) -> None:
    watched = Watched(qtbot, home, ("/nowhere/shoal",))
    watched.process.start()
    qtbot.waitUntil(lambda: EngineStopped in watched.kinds(), timeout=5000)
    stopped = watched.messages[-1]
    assert isinstance(stopped, EngineStopped)
    assert "/nowhere/shoal cannot be started" in stopped.reason


def test_engine_that_ends_for_a_new_version_is_not_started_again_by_the_old_app(
    qtbot: QtBot, home: Home
) -> None:
    command = (sys.executable, "-c", f"raise SystemExit({RESTART_EXIT})")
    one = Watched(qtbot, home, command)
    with qtbot.waitSignals([one.process.restart_wanted, one.process.ended], order="strict"):
        one.process.start()
    assert one.kinds() == [EngineStarting]
    one.process.deleteLater()
