"""The first steps on a real (virtual) screen, with the real engine."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.localapi.client import ApiClient
from engine.localapi.running import Home, find_running
from engine.localapi.schema import EngineStatus
from tests.support.desktop.screen import Desktop, desktop, require_desktop_programs, wait_until
from tests.support.tiny_models import save_tiny, save_tokenizer

pytestmark = [pytest.mark.end2end, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[2]
START_LIMIT_S = 120.0
WELCOME = "Welcome to Shoal"


@dataclass
class Person:
    """Somebody with a desktop, on which the app is started now and then."""

    screen: Desktop
    folder: Path

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        engine = f"{sys.executable} -m engine engine --await-setup --model {self.folder / 'model'}"
        with (self.folder / "app.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "app", "--engine-command", engine, *words],
                cwd=REPOSITORY,
                env=self.screen.environment | {"SHOAL_HOME": str(self.folder / "home")},
                stdout=log,
                stderr=log,
            )

    def status(self) -> EngineStatus | None:
        running = find_running(Home.under(self.folder / "home"))
        if running is None:
            return None
        answer = ApiClient.of(running).call("GET", "/shoal/v1/status")
        return EngineStatus.model_validate(answer)

    def can_chat(self) -> bool:
        status = self.status()
        return status is not None and status.can_chat


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    require_desktop_programs()
    save_tiny("llama", tmp_path / "model")
    save_tokenizer(tmp_path / "model")
    with ExitStack() as stack:
        screen = stack.enter_context(desktop(tmp_path, tray=True))
        yield Person(screen, tmp_path)
        screen.grab(tmp_path / "at-the-end.png")


def end(app: subprocess.Popen[bytes]) -> None:
    app.send_signal(signal.SIGTERM)
    assert app.wait(timeout=20) == 0


def test_person_goes_through_the_first_steps_once_and_opens_an_invite_later(person: Person) -> None:
    app = person.start()
    try:
        person.screen.wait_for_window(WELCOME, START_LIMIT_S)
        status = person.status()
        assert status is not None
        assert status.awaits_setup
        assert status.peer_id is None
        for _ in range(3):  # Next, Next, Begin
            time.sleep(0.5)
            person.screen.keys("Return")
        wait_until(person.can_chat, START_LIMIT_S, "an engine that can chat")
        time.sleep(1.5)  # the window learns of it
        person.screen.keys("Return")
        person.screen.wait_for_window("Shoal chat")
        end(app)

        app = person.start()
        wait_until(person.can_chat, START_LIMIT_S, "an engine that begins by itself")
        assert not person.screen.windows(WELCOME)
        second = person.start("shoal://aGVsbG8")
        assert second.wait(timeout=20) == 0
        person.screen.wait_for_window("Shoal settings")
        assert app.poll() is None
        end(app)
    finally:
        if app.poll() is None:
            app.kill()
            app.wait(timeout=10)
