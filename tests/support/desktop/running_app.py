"""The app as a process on a desktop, and what a person can do there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import psutil

from engine.localapi.running import Home, find_running, read_token
from engine.localapi.schema import EngineStatus
from tests.support.desktop.eyes import Eyes, Thing
from tests.support.desktop.screen import LOOK_LIMIT_S, Desktop, wait_until
from tests.support.desktop.xtray import Box

REPOSITORY = Path(__file__).parents[3]


@dataclass
class App:
    """A running app, its engine and the desktop it is on."""

    screen: Desktop
    folder: Path
    words: tuple[str, ...]
    """Of its command line."""
    start_limit_s: float
    environment: dict[str, str]
    process: subprocess.Popen[bytes]
    others: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _eyes: Eyes | None = None

    @property
    def home(self) -> Home:
        return Home.under(self.folder / "home")

    # The process ----------------------------------------------------------------------------

    def start_again(self) -> None:
        """Start it once more, when the one before has ended."""
        self._close_eyes()
        self.process = self.start_second(*self.words)

    def start_second(self, *words: str) -> subprocess.Popen[bytes]:
        """Start another one beside it."""
        return _launch(self.folder, self.environment, *words)

    def kill(self) -> None:
        """End it so that it cannot say goodbye."""
        self.process.kill()
        self.process.wait(timeout=10)

    def wait_for_end(self, limit_s: float = 15.0) -> int:
        return self.process.wait(timeout=limit_s)

    def end_all(self) -> None:
        """Leave nothing behind, whatever has happened."""
        self.screen.grab(self.folder / "at-the-end.png")
        self._close_eyes()
        engine = find_running(self.home)
        for process in (self.process, *self.others):
            process.kill()
            process.wait(timeout=10)
        if engine is not None:
            psutil.wait_procs([psutil.Process(engine.pid)] if alive(engine.pid) else [], timeout=5)
            if alive(engine.pid):
                os.kill(engine.pid, signal.SIGKILL)

    # The engine -----------------------------------------------------------------------------

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
            try:
                status = self.status()
            except urllib.error.URLError:
                return None  # it ended just now
            return status if status.state in states else None

        limit = self.start_limit_s if limit_s is None else limit_s
        return wait_until(in_state, limit, f"the state {' or '.join(states)}")

    def engine_pid(self) -> int:
        engine = wait_until(lambda: find_running(self.home), self.start_limit_s, "an engine")
        return engine.pid

    # Hands ----------------------------------------------------------------------------------

    def click_icon(self, *, button: int = 1) -> None:
        icon = self.screen.tray.wait_for_icon(LOOK_LIMIT_S)
        time.sleep(0.2)  # panels move their icons while they dock
        icon = self.screen.tray.wait_for_icon(LOOK_LIMIT_S)
        self.screen.click(*icon.centre, button=button)

    def choose(self, key: str) -> None:
        """Open the tray's menu with the mouse and choose the entry with this underlined letter."""
        self.click_icon(button=3)
        wait_until(self.screen.menu_is_open, LOOK_LIMIT_S, "the tray's menu")
        self.screen.keys(key)

    def press(self, name: str, *, window: str = "", at: int = 0, button: int = 1) -> None:
        """Click a control that can be used, when it is there and rests.

        Args:
            name: Its accessible name.
            window: Words of the window's title.
            at: Which of several: 0 the first, -1 the last.
            button: Of the mouse.
        """

        def place() -> Box | None:
            found = self.controls(name, window)
            if not found or "enabled" not in found[at].states:
                return None
            box = self.eyes.box(found[at])
            return box if box is not None and box.width > 0 else None

        def pressed() -> bool:
            box = place()
            if box is None:
                return False
            self.screen.point_at(*box.centre)
            if place() != box:
                return False  # what is drawn anew moves
            self.screen.click_there(button=button)
            return True

        wait_until(pressed, LOOK_LIMIT_S, f"a control {name!r} to press")

    # Eyes -----------------------------------------------------------------------------------

    @property
    def eyes(self) -> Eyes:
        if self._eyes is None:
            self._eyes = Eyes(self.screen.bus, self.process.pid)
        return self._eyes

    def things(self, window: str = "") -> list[Thing]:
        """What can be seen, in all windows or in those with these words in their title."""
        return [thing for top in self.eyes.windows() if window in top.name for thing in top.all()]

    def named(self, name: str, window: str = "") -> list[Thing]:
        """What has this accessible name, in which `*` stands for anything."""
        return [thing for thing in self.things(window) if fnmatchcase(thing.name, name)]

    def controls(self, name: str, window: str = "") -> list[Thing]:
        """The same without the texts beside controls, which have their names."""
        return [thing for thing in self.named(name, window) if thing.role != "label"]

    def reads(self, window: str = "") -> str:
        """All that can be read there, each text on its line."""
        return "\n".join(thing.words for thing in self.things(window) if thing.words)

    def wait_to_read(self, *texts: str, window: str = "", limit_s: float = LOOK_LIMIT_S) -> None:
        """Wait until all of these can be read."""
        seen = ""

        def shown() -> bool:
            nonlocal seen
            seen = self.reads(window)
            return all(text in seen for text in texts)

        try:
            wait_until(shown, limit_s, f"the text {texts}")
        except AssertionError as error:
            raise AssertionError(f"{error}; there was:\n{seen}") from None

    def conversation(self) -> str:
        """Copy the whole conversation, as a person would."""
        self.screen.wait_for_window("Shoal chat")
        self.screen.keys("ctrl+shift+c")
        return self.screen.clipboard()

    def _close_eyes(self) -> None:
        if self._eyes is not None:
            self._eyes.close()
            self._eyes = None


@contextmanager
def running_app(
    screen: Desktop,
    folder: Path,
    *words: str,
    start_limit_s: float,
    is_read: bool = True,
    **more: str,
) -> Iterator[App]:
    """Start the app on a desktop; end it and its engine with the block.

    Args:
        screen: Where it shall show itself.
        folder: For its home and its output.
        words: Of its command line.
        start_limit_s: How long its engine may take to start.
        is_read: Whether there is a screen reader; without one it is a little smaller.
        more: Of its environment.
    """
    environment = screen.environment | {"SHOAL_HOME": str(folder / "home")} | more
    if is_read:
        environment["AT_SPI_BUS_ADDRESS"] = screen.bus
    process = _launch(folder, environment, *words)
    app = App(screen, folder, words, start_limit_s, environment, process)
    try:
        yield app
    finally:
        app.end_all()


def _launch(folder: Path, environment: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    with (folder / "app.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "app", *words],
            cwd=REPOSITORY,
            env=environment,
            stdout=log,
            stderr=log,
        )


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
