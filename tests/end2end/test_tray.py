"""The app as a process, on a real (virtual) screen with a real tray, used by mouse and keyboard."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.localapi.running import Home, find_running, read_token
from engine.localapi.schema import EngineStatus
from tests.support.desktop.screen import Desktop, desktop, require_desktop_programs, wait_until

pytestmark = pytest.mark.end2end

REPOSITORY = Path(__file__).parents[2]
FAKE_ENGINE = f"{sys.executable} -m tests.support.fake_engine"
TRAY_LIMIT_S = 2.0
MEMORY_LIMIT_BYTES = 150_000_000
START_LIMIT_S = 15.0
REAL_START_LIMIT_S = 120.0


@dataclass
class App:
    """A running app, its engine and the desktop it is on."""

    screen: Desktop
    home: Home
    process: subprocess.Popen[bytes]
    start_limit_s: float
    is_fake: bool
    others: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def click_icon(self, *, button: int = 1) -> None:
        icon = self.screen.tray.wait_for_icon(8.0)
        time.sleep(0.2)  # panels move their icons while they dock
        icon = self.screen.tray.wait_for_icon(8.0)
        self.screen.click(*icon.centre, button=button)

    def choose(self, key: str) -> None:
        """Open the tray's menu with the mouse and choose the entry with this underlined letter."""
        self.click_icon(button=3)
        wait_until(self.screen.menu_is_open, 8.0, "the tray's menu")
        self.screen.keys(key)

    def ask_engine(self, path: str, body: dict[str, Any] | None = None) -> Any:
        engine = find_running(self.home)
        assert engine is not None, "no engine runs"
        request = urllib.request.Request(
            engine.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {read_token(Path(engine.token_file))}"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def status(self) -> EngineStatus:
        return EngineStatus.model_validate(self.ask_engine("/shoal/v1/status"))

    def wait_for_state(self, *states: str, limit_s: float | None = None) -> EngineStatus:
        def in_state() -> EngineStatus | None:
            if find_running(self.home) is None:
                return None
            status = self.status()
            return status if status.state in states else None

        limit = self.start_limit_s if limit_s is None else limit_s
        return wait_until(in_state, limit, f"the state {' or '.join(states)}")

    def engine_pid(self) -> int:
        engine = wait_until(lambda: find_running(self.home), self.start_limit_s, "an engine")
        return engine.pid

    def wait_for_end(self, limit_s: float = 15.0) -> int:
        return self.process.wait(timeout=limit_s)

    def conversation(self) -> str:
        """Copy the whole conversation, as a person would."""
        self.screen.wait_for_window("Shoal chat")
        self.screen.keys("ctrl+shift+c")
        return self.screen.clipboard()


StartApp = Callable[..., App]


@pytest.fixture
def start_app(tmp_path: Path) -> Iterator[StartApp]:
    """Starts the app on a desktop of its own; ends what it started, however the test ends."""
    require_desktop_programs()
    started: list[App] = []
    desktops: list[Any] = []

    def start(
        *, tray: bool = True, engine_command: str | None = FAKE_ENGINE, model: str = ""
    ) -> App:
        arguments = () if engine_command else ("--model", model or str(tiny_model(tmp_path)))
        context = desktop(tmp_path, tray=tray)
        screen = context.__enter__()
        desktops.append(context)
        home = Home.under(tmp_path / "home")
        process = launch(screen, tmp_path, engine_command, arguments)
        app = App(
            screen, home, process,
            start_limit_s=START_LIMIT_S if engine_command else REAL_START_LIMIT_S,
            is_fake=engine_command is not None,
        )  # fmt: skip
        started.append(app)
        return app

    yield start
    for app in started:
        app.screen.grab(tmp_path / "at-the-end.png")
        engine = find_running(app.home)
        for process in (app.process, *app.others):
            process.kill()
            process.wait(timeout=10)
        if engine is not None:
            psutil.wait_procs([psutil.Process(engine.pid)] if alive(engine.pid) else [], timeout=5)
            if alive(engine.pid):
                os.kill(engine.pid, signal.SIGKILL)
    for context in desktops:
        context.__exit__(None, None, None)


def launch(
    screen: Desktop, folder: Path, engine_command: str | None, engine: tuple[str, ...] = ()
) -> subprocess.Popen[bytes]:
    own = ["--engine-command", engine_command] if engine_command else []
    with (folder / "app.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "app", *own, "--", *engine],
            cwd=REPOSITORY,
            env=screen.environment | {"SHOAL_HOME": str(folder / "home")},
            stdout=log,
            stderr=log,
        )


def tiny_model(folder: Path) -> Path:
    """A model of random weights: its answers make no sense, but take the whole path."""
    from tests.support.tiny_models import save_tiny, save_tokenizer

    directory = folder / "model"
    save_tiny("llama", directory)
    save_tokenizer(directory)
    return directory


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


ENGINES = [
    pytest.param(FAKE_ENGINE, id="fake-engine"),
    pytest.param(None, id="real-engine", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("engine_command", ENGINES)
def test_person_pauses_resumes_chats_and_quits_from_the_tray(
    start_app: StartApp, engine_command: str | None
) -> None:
    app = start_app(engine_command=engine_command)
    app.wait_for_state("idle", "serving")

    app.choose("p")
    app.wait_for_state("paused", limit_s=10)
    app.choose("r")
    app.wait_for_state("idle", "serving")
    wait_until(lambda: app.status().can_chat, 15, "a route")

    app.click_icon()
    app.screen.wait_for_window("Shoal chat")
    question = "What is a shoal?"
    app.screen.write(question)
    app.screen.keys("Return")

    def answer() -> str:
        return app.conversation().partition(question)[2].strip(" \n…")

    if app.is_fake:
        wait_until(lambda: answer().endswith("That is all."), 15, "the whole answer")
        assert "fish.follow(neighbours)" in answer()
    else:
        wait_until(answer, 60, "an answer")
        wait_until(lambda: app.status().tokens_used > 0, 10, "the engine's count of it")

    engine = app.engine_pid()
    app.choose("q")
    assert app.wait_for_end() == 0
    wait_until(lambda: not alive(engine), 5, "the end of the engine")


def test_each_kind_of_pause_is_one_choice_in_the_tray(start_app: StartApp) -> None:
    app = start_app()
    app.wait_for_state("idle")
    for key, asked in (("h", {"seconds": 3600}), ("t", {"until_tomorrow": True}), ("p", {})):
        app.choose(key)
        paused = app.wait_for_state("paused", limit_s=10)
        assert (paused.until is None) is (key == "p")
        assert app.ask_engine("/fake")["pauses"][-1] == asked
        app.choose("r")
        app.wait_for_state("idle", limit_s=10)
    app.choose("f")
    app.wait_for_state("draining", limit_s=10)
    assert app.ask_engine("/fake")["pauses"][-1] == {"finish_first": True}
    app.choose("p")
    app.wait_for_state("paused", limit_s=10)


def test_icon_is_there_quickly_and_the_app_stays_small(start_app: StartApp) -> None:
    app = start_app()
    app.wait_for_state("idle")
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, 8, "the connection")
    app.click_icon()
    app.screen.wait_for_window("Shoal chat")
    app.screen.write("Hello")
    app.screen.keys("Return")
    wait_until(lambda: "That is all." in app.conversation(), 15, "the whole answer")
    used_bytes = psutil.Process(app.process.pid).memory_info().rss
    assert used_bytes < MEMORY_LIMIT_BYTES

    app.process.terminate()
    assert app.wait_for_end() == 0
    started_s = time.monotonic()  # warm now: what the first start read from disk is in memory
    app.process = launch(app.screen, app.home.state_dir.parents[1], FAKE_ENGINE)
    app.screen.tray.wait_for_icon(10)
    assert time.monotonic() - started_s < TRAY_LIMIT_S


@pytest.mark.parametrize("engine_command", ENGINES)
def test_killed_app_leaves_no_process_behind(
    start_app: StartApp, engine_command: str | None
) -> None:
    app = start_app(engine_command=engine_command)
    app.wait_for_state("idle", "serving")
    if app.is_fake:
        wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, 8, "the lease")
    engine = psutil.Process(app.engine_pid())
    family = [engine.pid, *(child.pid for child in engine.children(recursive=True))]
    app.process.kill()
    wait_until(lambda: not any(alive(pid) for pid in family), 5, "the end of the engine")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_app_and_engine_in_order(start_app: StartApp, number: signal.Signals) -> None:
    app = start_app()
    engine = app.engine_pid()
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, 8, "the lease")
    app.process.send_signal(number)
    assert app.wait_for_end() == 0
    assert not alive(engine)


def test_second_start_raises_the_first_and_ends(start_app: StartApp, tmp_path: Path) -> None:
    app = start_app()
    app.screen.tray.wait_for_icon(8)
    assert not app.screen.windows("Shoal chat")
    second = launch(app.screen, tmp_path, FAKE_ENGINE)
    assert second.wait(timeout=10) == 0
    app.screen.wait_for_window("Shoal chat")
    assert app.process.poll() is None


def test_engine_that_was_there_before_stays_when_the_app_quits(
    start_app: StartApp, tmp_path: Path
) -> None:
    environment = os.environ | {"SHOAL_HOME": str(tmp_path / "home")}
    service = subprocess.Popen(
        [sys.executable, "-m", "tests.support.fake_engine"], cwd=REPOSITORY, env=environment
    )
    wait_until(lambda: find_running(Home.under(tmp_path / "home")), 15, "the service")
    app = start_app()
    app.others.append(service)
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, 8, "the connection")
    app.choose("q")
    assert app.wait_for_end() == 0
    assert app.ask_engine("/fake")["quits"] == 0
    assert service.poll() is None


def test_without_a_tray_a_window_offers_the_same_controls(start_app: StartApp) -> None:
    app = start_app(tray=False)
    app.wait_for_state("idle")
    window = app.screen.wait_for_window("Shoal")
    subprocess.run(
        ["xdotool", "windowactivate", "--sync", window], env=app.screen.environment, check=True
    )
    app.screen.keys("alt+p")
    wait_until(app.screen.menu_is_open, 8.0, "the ways to pause")
    app.screen.keys("p")
    app.wait_for_state("paused", limit_s=8)
    app.screen.keys("alt+r")
    app.wait_for_state("idle", limit_s=8)
    app.screen.keys("alt+o")
    app.screen.wait_for_window("Shoal chat")
    app.screen.keys("ctrl+w")
    wait_until(lambda: not app.screen.windows("Shoal chat"), 5, "the end of the chat window")
    assert app.process.poll() is None
    engine = app.engine_pid()
    app.screen.keys("alt+q")
    assert app.wait_for_end() == 0
    wait_until(lambda: not alive(engine), 5, "the end of the engine")


def test_dashboard_opens_from_the_tray_and_asks_for_what_is_looked_at(start_app: StartApp) -> None:
    app = start_app()
    app.wait_for_state("idle")
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, 8, "the connection")
    app.choose("d")
    app.screen.wait_for_window("Shoal dashboard")

    def asked(*wanted: str) -> bool:
        return app.ask_engine("/fake")["past"][-len(wanted) :] == list(wanted)

    wait_until(lambda: asked("hour"), 8, "the last hour")
    app.screen.keys("alt+a", "alt+w")
    wait_until(lambda: asked("week"), 8, "the last week")
    app.screen.keys("alt+l")
    wait_until(lambda: asked("log"), 8, "the log")
    app.screen.keys("alt+g")
    wait_until(lambda: asked("diagnostics"), 8, "the files of the archive")
    app.screen.keys("ctrl+w")
    wait_until(lambda: not app.screen.windows("Shoal dashboard"), 5, "the end of the window")
    assert app.process.poll() is None


def test_engine_that_crashes_is_started_again(start_app: StartApp) -> None:
    app = start_app()
    first = app.engine_pid()
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, 8, "the lease")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not alive(first), 5, "the end of the first engine")

    def new_lease() -> bool:
        engine = find_running(app.home)
        return engine is not None and engine.pid != first and app.ask_engine("/fake")["leases"] == 1

    wait_until(new_lease, 15, "a new engine with our lease")


def test_app_without_a_screen_says_what_to_do() -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    done = subprocess.run(
        [sys.executable, "-m", "app"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "shoal: There is no screen here; use `shoal engine` and `shoal chat` instead of the tray."
    )


@pytest.mark.slow
def test_answer_is_stopped_edited_and_given_again_with_a_real_model(start_app: StartApp) -> None:
    app = ready_to_chat(start_app)
    ask(app, "Name all the seas of the world and describe each")
    wait_until(lambda: len(last_text(app)) > 20, 60, "an answer")
    app.screen.keys("Escape")
    wait_until(lambda: kept(app)[-1]["ending"] == "stopped", 10, "its end")
    assert last_text(app) in app.conversation()

    app.screen.keys("ctrl+e")
    app.screen.write(" in two words")
    app.screen.keys("Return")
    edited = wait_until(
        lambda: next((m for m in kept(app) if "two words" in m["text"]), None), 10, "the branch"
    )
    assert len(edited["siblings"]) == 2
    app.screen.keys("Escape")
    wait_until(lambda: kept(app)[-1]["ending"], 10, "its end")

    time.sleep(0.3)  # the window learns of the end just after the engine
    app.screen.keys("ctrl+r")
    wait_until(lambda: len(kept(app)[-1]["siblings"]) == 2, 10, "another answer")
    wait_until(lambda: last_text(app), 60, "its text")
    app.screen.keys("Escape")
    assert len(kept(app)) == 2


@pytest.mark.slow
def test_conversation_survives_the_death_of_app_and_engine(start_app: StartApp) -> None:
    app = ready_to_chat(start_app)
    question = "Write a long story about a herring"
    ask(app, question)
    wait_until(lambda: len(last_text(app)) > 20, 60, "an answer")
    seen = last_text(app)
    engine = app.engine_pid()
    os.kill(app.process.pid, signal.SIGKILL)
    os.kill(engine, signal.SIGKILL)
    app.process.wait(timeout=5)
    app.home.running_file.unlink(missing_ok=True)

    app.process = launch(app.screen, app.home.state_dir.parents[1], None, ("--model", "starter"))
    app.wait_for_state("idle", "serving")
    answer = kept(app)[-1]
    assert answer["ending"] == "interrupted"
    assert answer["text"].startswith(seen)
    app.click_icon()
    app.screen.wait_for_window("Shoal chat")
    app.screen.keys("ctrl+k", "Tab", "Down")
    wait_until(lambda: question in app.conversation(), 10, "the conversation")
    assert seen in app.conversation()


def ready_to_chat(start_app: StartApp) -> App:
    """A real engine with the built-in model, and the chat window open."""
    app = start_app(engine_command=None, model="starter")
    app.wait_for_state("idle", "serving")
    wait_until(lambda: app.status().can_chat, 15, "a route")
    app.click_icon()
    app.screen.wait_for_window("Shoal chat")
    return app


def ask(app: App, question: str) -> None:
    app.screen.write(question)
    app.screen.keys("Return")
    wait_until(lambda: kept(app), 10, "the question in the engine")


def kept(app: App) -> list[dict[str, Any]]:
    """What the engine keeps of the newest conversation."""
    chats = app.ask_engine("/shoal/v1/chats")["chats"]
    if not chats:
        return []
    return app.ask_engine(f"/shoal/v1/chats/{chats[0]['id']}/messages")["messages"]


def last_text(app: App) -> str:
    found = kept(app)
    return found[-1]["text"] if len(found) > 1 else ""


@pytest.mark.slow
def test_table_becomes_results_in_the_window_of_batches(
    start_app: StartApp, tmp_path: Path
) -> None:
    app = start_app(engine_command=None)
    app.wait_for_state("idle", "serving")
    wait_until(lambda: app.status().can_chat, 15, "a route")
    table = tmp_path / "fish.csv"
    table.write_text("name,place\nHerring,North Sea\n,\nSardine,Bay of Biscay\n")
    app.choose("b")
    app.screen.wait_for_window("Shoal batches")
    app.screen.keys("ctrl+n")
    app.screen.write(str(table))
    app.screen.keys("alt+t")
    app.screen.write("Where does the {name} live? In the {place}?")
    app.screen.keys("alt+l")
    app.screen.write("4\t")
    time.sleep(1.5)  # the first rows are drawn a moment after the last key
    app.screen.keys("ctrl+Return")

    def job() -> dict[str, Any]:
        jobs = app.ask_engine("/shoal/v1/jobs")["jobs"]
        return jobs[0] if jobs else {"state": "none"}

    wait_until(lambda: job()["state"] in ("review", "completed"), 30, "the check of the rows")
    if job()["state"] == "review":
        time.sleep(0.5)  # the window learns of it just after the engine
        app.screen.keys("alt+s")
    done = wait_until(lambda: job() if job()["state"] == "completed" else None, 60, "its end")
    with (tmp_path / "fish.results.csv").open(newline="", encoding="utf-8-sig") as file:
        results = list(csv.reader(file))  # an answer may have several lines
    assert len(results) == 1 + done["total_rows"]
    assert done["done_rows"] >= 2
    assert done["done_rows"] + done["failed_rows"] == done["total_rows"]
    app.screen.keys("ctrl+w")
    wait_until(lambda: not app.screen.windows("Shoal batches"), 5, "the end of the window")
    assert app.process.poll() is None
