"""The app and an engine in WSL, with a program that stands for `wsl.exe`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import wsl
from app.engine_link.api import Api
from app.engine_link.engine import EngineLink
from app.engine_process import EngineProcess, EngineStart
from app.engine_start import engine_start, home_in_wsl
from app.messages import EngineStopped, Message, StatusArrived
from engine import __version__
from engine.localapi.running import Home
from engine.localapi.schema import ReadyFile
from tests.support.windows.computer import wsl_command
from tests.support.windows.wsl_stand_in import Windows

ENGINE = (sys.executable, "-m", "tests.support.windows.engine_in_wsl")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path))
    return Home.under(tmp_path)


@pytest.fixture
def made(qtbot: QtBot) -> Iterator[list[EngineProcess]]:
    processes: list[EngineProcess] = []
    yield processes
    for process in processes:
        with qtbot.waitSignal(process.ended, timeout=15_000):
            process.end(asked=False)
        process.deleteLater()


def _process(command: tuple[str, ...], home: Home, made: list[EngineProcess]) -> EngineProcess:
    line = (*command, *wsl.in_distribution(wsl.start_of(__version__), "engine"))
    made.append(EngineProcess(home, EngineStart(line, home_in_wsl(), in_wsl=True)))
    return made[-1]


def test_engine_in_wsl_says_on_its_output_where_it_is_and_with_which_token(
    qtbot: QtBot, home: Home, made: list[EngineProcess]
) -> None:
    process = _process(ENGINE, home, made)
    api = Api()
    link = EngineLink(api)
    messages: list[Message] = []
    link.message.connect(messages.append)
    ready: list[ReadyFile] = []
    process.ready.connect(ready.append)
    process.ready.connect(link.open)
    process.start()
    qtbot.waitUntil(
        lambda: any(isinstance(message, StatusArrived) for message in messages), timeout=20_000
    )
    assert ready[0].token is not None
    assert ready[0].token not in repr(ready[0])
    assert not Path(ready[0].token_file).exists()
    link.close()  # the lease: no signal reaches an engine in WSL
    qtbot.waitUntil(lambda: not process.is_ours, timeout=15_000)
    link.deleteLater()
    api.deleteLater()


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"wsl": "absent"}, "which is not turned on"),
        ({"wsl": "needs restart"}, "which is not turned on"),
        ({"distributions": {"Ubuntu": 2}}, "is gone from WSL"),
    ],
)
def test_wsl_that_cannot_run_the_engine_is_told_in_one_sentence_and_not_tried_again(
    qtbot: QtBot,
    home: Home,
    made: list[EngineProcess],
    state: dict[str, object],
    reason: str,
    tmp_path: Path,
) -> None:
    (folder := tmp_path / "pc").mkdir()
    windows = Windows(folder)
    windows.put(**state)
    process = _process(wsl_command(folder), home, made)
    messages: list[Message] = []
    process.message.connect(messages.append)
    process.start()
    qtbot.waitUntil(
        lambda: any(isinstance(message, EngineStopped) for message in messages), timeout=20_000
    )
    (stopped,) = [message for message in messages if isinstance(message, EngineStopped)]
    assert reason in stopped.reason
    assert len(windows.calls()) == 1


def test_engine_of_a_version_that_runs_again_learns_it_and_takes_its_chats_of_before(
    qtbot: QtBot,
    home: Home,
    made: list[EngineProcess],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("SHOAL_ROLLED_BACK_FROM", "9.9.9")
    told = tmp_path / "told"
    note = f"import os; open({str(told)!r}, 'w').write(os.environ['WSLENV'])"
    process = _process((sys.executable, "-c", note), home, made)
    process.start()
    qtbot.waitUntil(lambda: told.exists() and bool(told.read_text()), timeout=20_000)
    assert "SHOAL_ROLLED_BACK_FROM" in told.read_text().split(":")


def test_without_wsl_exe_the_setup_is_what_helps(
    qtbot: QtBot, home: Home, made: list[EngineProcess], tmp_path: Path
) -> None:
    process = _process((str(tmp_path / "wsl.exe"),), home, made)
    messages: list[Message] = []
    process.message.connect(messages.append)
    process.start()
    qtbot.waitUntil(
        lambda: any(isinstance(message, EngineStopped) for message in messages), timeout=20_000
    )
    assert "start Shoal's setup again" in str(messages[-1])


def test_on_windows_the_engine_is_started_in_wsl_and_elsewhere_by_this_python(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine_start(home, None, ()).command[-1] == "--await-setup"
    assert engine_start(home, None, ("--model", "x")).command[-2:] == ("--model", "x")
    assert engine_start(home, ("ssh", "gpu"), ("--model", "x")) == EngineStart(
        ("ssh", "gpu", "--model", "x"), home
    )
    monkeypatch.setattr(sys, "platform", "win32")
    start = engine_start(home, None, ())
    assert start.in_wsl
    assert start.command == wsl.engine_command(__version__, "--await-setup")
    assert str(start.home.log_file).startswith(r"\\wsl.localhost\Shoal\home\shoal\.local\state")
