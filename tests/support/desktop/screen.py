"""A throw-away desktop: X server, window manager and, if wanted, a panel with a real tray."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.desktop.eyes import accessibility_bus
from tests.support.desktop.xtray import XTray

T = TypeVar("T")
PACKAGES = Path(__file__).with_name("apt-packages.txt")
PROGRAMS = ("Xvfb", "openbox", "tint2", "xdotool", "xprop", "dbus-daemon")
START_LIMIT_S = 20.0
LOOK_LIMIT_S = 30.0
"""For what a person sees at once, on a machine that has much else to do."""
PANEL = """
panel_items = TSC
panel_size = 100% 36
panel_position = bottom center horizontal
panel_monitor = all
rounded = 0
border_width = 0
background_color = #2b2b2b 100
taskbar_mode = single_desktop
task_font = DejaVu Sans 9
task_font_color = #ffffff 100
systray_padding = 6 4 6
systray_icon_size = 24
time1_format = %H:%M
time1_font = DejaVu Sans 9
clock_font_color = #ffffff 100
"""
READ_CLIPBOARD = (
    "from PySide6.QtGui import QGuiApplication; app = QGuiApplication([]); "
    "print(app.clipboard().text())"
)
GRAB_SCREEN = (
    "import sys; from PySide6.QtGui import QGuiApplication; app = QGuiApplication([]); "
    "app.primaryScreen().grabWindow(0).save(sys.argv[1])"
)


def require_desktop_programs() -> None:
    """Fail in CI, skip elsewhere, when this machine cannot show a desktop."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if not missing:
        return
    text = f"no {', '.join(missing)}: install the packages in {PACKAGES}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(text)
    pytest.skip(text)


class Desktop:
    """A running desktop and the hands of its user.

    Args:
        display: Of its X server.
        bus: Where programs can be told to say what is in their windows.
    """

    def __init__(self, display: str, bus: str) -> None:
        self.display = display
        self.bus = bus
        self.tray = XTray(display)

    @property
    def environment(self) -> dict[str, str]:
        """For programs that belong on this desktop."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "QT_SCALE_FACTOR", "LANGUAGE")
        }
        # No session bus: the tray must be the panel's, not one that the tester's bus offers.
        return kept | {
            "DISPLAY": self.display,
            "DBUS_SESSION_BUS_ADDRESS": "disabled:",
            "LC_ALL": "C.UTF-8",
        }

    def click(self, x: int, y: int, *, button: int = 1) -> None:
        self.point_at(x, y)
        self.click_there(button=button)

    def point_at(self, x: int, y: int) -> None:
        self._xdotool("mousemove", str(x), str(y))
        time.sleep(0.2)

    def click_there(self, *, button: int = 1) -> None:
        """Click where the mouse is."""
        self._xdotool("click", str(button))

    def keys(self, *names: str) -> None:
        """Press keys, by their X names."""
        for name in names:
            self._xdotool("key", "--clearmodifiers", name)
            time.sleep(0.1)

    def write(self, text: str) -> None:
        self._xdotool("type", "--delay", "15", text)

    def windows(self, title: str) -> list[str]:
        """Ids of the visible windows whose title contains `title`."""
        found = self._run("xdotool", "search", "--onlyvisible", "--name", title)
        return found.stdout.split()

    def wait_for_window(self, title: str, limit_s: float = LOOK_LIMIT_S) -> str:
        return wait_until(lambda: self.windows(title), limit_s, f"a window {title!r}")[0]

    def wait_for_keyboard(self, title: str, limit_s: float = LOOK_LIMIT_S) -> None:
        """Wait until what is typed goes to a window whose title contains `title`."""

        def has_it() -> bool:
            return title in self._run("xdotool", "getactivewindow", "getwindowname").stdout

        wait_until(has_it, limit_s, f"the keyboard in a window {title!r}")

    def menu_is_open(self) -> bool:
        """Whether a pop-up of some height is on the screen."""
        for window in self._run(
            "xdotool", "search", "--onlyvisible", "--class", "."
        ).stdout.split():
            kind = self._run("xprop", "-id", window, "_NET_WM_WINDOW_TYPE").stdout
            if "POPUP_MENU" in kind:
                return True
        return False

    def clipboard(self) -> str:
        """What the last Ctrl+C copied."""
        found = self._run(sys.executable, "-c", READ_CLIPBOARD)
        return found.stdout.rstrip("\n")

    def grab(self, file: Path) -> None:
        """Keep a picture of the whole screen."""
        self._run(sys.executable, "-c", GRAB_SCREEN, str(file))

    def close(self) -> None:
        self.tray.close()

    def _xdotool(self, *arguments: str) -> None:
        done = self._run("xdotool", *arguments)
        assert done.returncode == 0, done.stderr

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=20, check=False
        )


@contextmanager
def desktop(folder: Path, *, tray: bool) -> Iterator[Desktop]:
    """Start a desktop and end exactly what was started.

    Args:
        folder: For logs and the panel's settings.
        tray: Whether there is a panel with a tray.
    """
    processes: list[subprocess.Popen[bytes]] = []
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)

    def start(*command: str, display: str | None = None, **more: object) -> None:
        environment = os.environ | {"XDG_RUNTIME_DIR": str(runtime)}
        environment |= {"DISPLAY": display} if display else {}
        with (folder / f"{command[0]}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, **more)
            )

    everything = ExitStack()
    try:
        bus = everything.enter_context(accessibility_bus(folder))
        # The server itself picks a free display, and tells it when it is ready.
        read_end, write_end = os.pipe()
        start(
            "Xvfb", "-displayfd", str(write_end), "-screen", "0", "1280x800x24",
            "-nolisten", "tcp", pass_fds=(write_end,),
        )  # fmt: skip
        os.close(write_end)
        with os.fdopen(read_end) as told:
            display = f":{told.readline().strip()}"
        assert display != ":", (folder / "Xvfb.log").read_text()
        start("openbox", "--sm-disable", display=display)
        screen = Desktop(display, bus)
        try:
            wait_until(lambda: _has_window_manager(screen), START_LIMIT_S, "a window manager")
            if tray:
                settings = folder / "tint2rc"
                settings.write_text(PANEL)
                start("tint2", "-c", str(settings), display=display)
                wait_until(screen.tray.has_host, START_LIMIT_S, "a tray")
            yield screen
        finally:
            screen.close()
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=10)
        everything.close()


def wait_until(look: Callable[[], T], limit_s: float, what: str) -> T:
    """Call `look` until it gives something true, and return that."""
    end_s = time.monotonic() + limit_s
    while not (seen := look()):
        if time.monotonic() > end_s:
            raise AssertionError(f"{what} was not there within {limit_s} s")
        time.sleep(0.05)
    return seen


def _has_window_manager(screen: Desktop) -> bool:
    found = screen._run("xprop", "-root", "_NET_SUPPORTING_WM_CHECK")
    return "window id" in found.stdout
