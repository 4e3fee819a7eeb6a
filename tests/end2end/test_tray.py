"""The app as a process, on a real (virtual) screen with a real tray, used by mouse and keyboard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.localapi.running import Home, find_running
from tests.support.desktop.running_app import App, alive, running_app
from tests.support.desktop.screen import LOOK_LIMIT_S, desktop, require_desktop_programs, wait_until

pytestmark = pytest.mark.end2end

REPOSITORY = Path(__file__).parents[2]
FAKE_ENGINE = f"{sys.executable} -m tests.support.fake_engine"
MEMORY_LIMIT_BYTES = 150_000_000
START_LIMIT_S = 15.0
REAL_START_LIMIT_S = 120.0

StartApp = Callable[..., App]


@pytest.fixture
def start_app(tmp_path: Path) -> Iterator[StartApp]:
    """Starts the app on a desktop of its own; ends what it started, however the test ends."""
    require_desktop_programs()
    with ExitStack() as everything:

        def start(
            *more_words: str,
            tray: bool = True,
            engine_command: str | None = FAKE_ENGINE,
            **more: Any,
        ) -> App:
            words = (
                (*more_words, "--engine-command", engine_command)
                if engine_command
                else (*more_words, "--", "--model", str(tiny_model(tmp_path)))
            )
            screen = everything.enter_context(desktop(tmp_path, tray=tray))
            limit_s = START_LIMIT_S if engine_command else REAL_START_LIMIT_S
            return everything.enter_context(
                running_app(screen, tmp_path, *words, start_limit_s=limit_s, **more)
            )

        yield start


def tiny_model(folder: Path) -> Path:
    """A model of random weights: its answers make no sense, but take the whole path."""
    from tests.support.tiny_models import save_tiny, save_tokenizer

    directory = folder / "model"
    save_tiny("llama", directory)
    save_tokenizer(directory)
    return directory


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
    app.wait_for_state("paused", limit_s=LOOK_LIMIT_S)
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

    if engine_command:
        wait_until(lambda: answer().endswith("That is all."), 15, "the whole answer")
        assert "fish.follow(neighbours)" in answer()
    else:
        wait_until(answer, 60, "an answer")
        wait_until(lambda: app.status().tokens_used > 0, LOOK_LIMIT_S, "the engine's count of it")

    engine = app.engine_pid()
    app.choose("q")
    assert app.wait_for_end() == 0
    wait_until(lambda: not alive(engine), 5, "the end of the engine")
    assert find_running(app.home) is None


def test_each_kind_of_pause_is_one_choice_in_the_tray(start_app: StartApp) -> None:
    app = start_app()
    app.wait_for_state("idle")
    for key, asked in (("h", {"seconds": 3600}), ("t", {"until_tomorrow": True}), ("p", {})):
        app.choose(key)
        paused = app.wait_for_state("paused", limit_s=LOOK_LIMIT_S)
        assert (paused.until is None) is (key == "p")
        assert app.ask_engine("/fake")["pauses"][-1] == asked
        app.choose("r")
        app.wait_for_state("idle", limit_s=LOOK_LIMIT_S)
    app.choose("f")
    app.wait_for_state("draining", limit_s=LOOK_LIMIT_S)
    assert app.ask_engine("/fake")["pauses"][-1] == {"finish_first": True}
    app.choose("p")
    app.wait_for_state("paused", limit_s=LOOK_LIMIT_S)


def test_app_stays_small_and_its_icon_comes_back_with_it(start_app: StartApp) -> None:
    app = start_app(is_read=False)
    app.wait_for_state("idle")
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, LOOK_LIMIT_S, "the connection")
    app.click_icon()
    app.screen.wait_for_window("Shoal chat")
    app.screen.write("Hello")
    app.screen.keys("Return")
    wait_until(lambda: "That is all." in app.conversation(), 15, "the whole answer")
    used_bytes = psutil.Process(app.process.pid).memory_info().rss
    assert used_bytes < MEMORY_LIMIT_BYTES

    app.process.terminate()
    assert app.wait_for_end() == 0
    app.start_again()
    app.screen.tray.wait_for_icon(10)  # how soon is what `shoal bench desktop` measures


@pytest.mark.parametrize("engine_command", ENGINES)
def test_killed_app_leaves_no_process_behind(
    start_app: StartApp, engine_command: str | None
) -> None:
    app = start_app(engine_command=engine_command)
    app.wait_for_state("idle", "serving")
    if engine_command:
        wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, LOOK_LIMIT_S, "the lease")
    engine = psutil.Process(app.engine_pid())
    family = [engine.pid, *(child.pid for child in engine.children(recursive=True))]
    app.process.kill()
    wait_until(lambda: not any(alive(pid) for pid in family), 5, "the end of the engine")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_app_and_engine_in_order(start_app: StartApp, number: signal.Signals) -> None:
    app = start_app()
    engine = app.engine_pid()
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, LOOK_LIMIT_S, "the lease")
    app.process.send_signal(number)
    assert app.wait_for_end() == 0
    assert not alive(engine)


def test_second_start_raises_the_first_and_ends(start_app: StartApp) -> None:
    app = start_app()
    app.screen.tray.wait_for_icon(8)
    assert not app.screen.windows("Shoal chat")
    second = app.start_second(*app.words)
    assert second.wait(timeout=10) == 0
    app.screen.wait_for_window("Shoal chat")
    assert app.process.poll() is None


def test_invite_of_the_command_line_is_offered_at_the_start_and_later(start_app: StartApp) -> None:
    settings = "Shoal settings"
    app = start_app("shoal://Zmlyc3Q")

    def offered(invite: str) -> bool:
        return any(field.words == invite for field in app.named("Invite", settings))

    wait_until(lambda: offered("shoal://Zmlyc3Q"), START_LIMIT_S, "the first invite")
    app.screen.wait_for_window(settings)
    app.screen.keys("ctrl+w")
    wait_until(lambda: not app.screen.windows(settings), 5, "the end of the window")
    second = app.start_second("shoal://c2Vjb25k")
    assert second.wait(timeout=10) == 0
    wait_until(lambda: offered("shoal://c2Vjb25k"), LOOK_LIMIT_S, "the second invite")
    assert app.process.poll() is None


def test_engine_that_was_there_before_stays_when_windows_close_and_the_app_quits(
    start_app: StartApp, tmp_path: Path
) -> None:
    environment = os.environ | {"SHOAL_HOME": str(tmp_path / "home")}
    service = subprocess.Popen(
        [sys.executable, "-m", "tests.support.fake_engine"], cwd=REPOSITORY, env=environment
    )
    wait_until(lambda: find_running(Home.under(tmp_path / "home")), 15, "the service")
    app = start_app()
    app.others.append(service)
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, LOOK_LIMIT_S, "the connection")
    for key, window in (("o", "Shoal chat"), ("b", "Shoal batches")):
        app.choose(key)
        app.screen.wait_for_window(window)
        app.screen.keys("ctrl+w")
        wait_until(lambda window=window: not app.screen.windows(window), 5, "its end")
    app.choose("q")
    assert app.wait_for_end() == 0
    assert app.ask_engine("/fake")["quits"] == 0
    assert service.poll() is None


def test_without_a_tray_a_window_offers_the_same_controls(start_app: StartApp) -> None:
    app = start_app(tray=False, XDG_CURRENT_DESKTOP="ubuntu:GNOME")
    app.wait_for_state("idle")
    window = app.screen.wait_for_window("Shoal")
    app.wait_to_read("AppIndicator and KStatusNotifierItem Support", "Open chat", "Quit Shoal")
    subprocess.run(
        ["xdotool", "windowactivate", "--sync", window], env=app.screen.environment, check=True
    )
    for key, left in (("h", "(1 h left)"), ("p", "Paused until you resume")):
        app.screen.keys("alt+p")
        wait_until(app.screen.menu_is_open, LOOK_LIMIT_S, "the ways to pause")
        app.screen.keys(key)
        app.wait_for_state("paused", limit_s=LOOK_LIMIT_S)
        app.wait_to_read(left)
        app.screen.keys("alt+r")
        app.wait_for_state("idle", limit_s=LOOK_LIMIT_S)
        wait_until(lambda: app.named("Pause"), LOOK_LIMIT_S, "the way to pause")
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
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, LOOK_LIMIT_S, "the connection")
    app.choose("d")
    app.screen.wait_for_window("Shoal dashboard")

    def asked(*wanted: str) -> bool:
        return app.ask_engine("/fake")["past"][-len(wanted) :] == list(wanted)

    wait_until(lambda: asked("hour"), LOOK_LIMIT_S, "the last hour")
    app.screen.keys("alt+a", "alt+w")
    wait_until(lambda: asked("week"), LOOK_LIMIT_S, "the last week")
    app.screen.keys("alt+l")
    wait_until(lambda: asked("log"), LOOK_LIMIT_S, "the log")
    app.screen.keys("alt+g")
    wait_until(lambda: asked("diagnostics"), LOOK_LIMIT_S, "the files of the archive")
    app.screen.keys("ctrl+w")
    wait_until(lambda: not app.screen.windows("Shoal dashboard"), 5, "the end of the window")
    assert app.process.poll() is None


def test_engine_that_crashes_is_started_again(start_app: StartApp) -> None:
    app = start_app()
    first = app.engine_pid()
    wait_until(lambda: app.ask_engine("/fake")["leases"] == 1, LOOK_LIMIT_S, "the lease")
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
