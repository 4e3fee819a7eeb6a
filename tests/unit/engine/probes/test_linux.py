import shutil
import subprocess
import sys
import time

import pytest

from engine.core.clock import SystemClock
from engine.probes.linux import LinuxSenses
from engine.probes.metered import Metered
from tests.support.private_bus import PrivateBus, private_bus

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")

GAME_MODE = "com.feralinteractive.GameMode"
NETWORK = "org.freedesktop.NetworkManager"
LOGIN = "org.freedesktop.login1"
MUTTER = "org.gnome.Mutter.IdleMonitor"
SCREEN_SAVER = "org.freedesktop.ScreenSaver"
UPOWER = "org.freedesktop.UPower"


@pytest.fixture
def bus(monkeypatch):
    with private_bus(monkeypatch) as running:
        yield running


@pytest.fixture
def senses(tmp_path):
    asked = LinuxSenses(tmp_path / "no-supplies", display="")
    yield asked
    asked.close()


@pytest.mark.parametrize(("clients", "expected"), [(0, False), (2, True)])
def test_gamemode_tells_whether_a_game_has_asked_for_it(bus, senses, clients, expected):
    bus.answers[GAME_MODE, "ClientCount"] = "i", clients
    assert senses.in_game_mode() is None  # it does not run, and is not started by asking
    bus.own(GAME_MODE)
    assert senses.in_game_mode() is expected


@pytest.mark.parametrize(
    ("told", "expected"), [(0, None), (1, True), (2, False), (3, True), (4, False)]
)
async def test_networkmanager_is_believed(bus, senses, told, expected):
    bus.answers[NETWORK, "Metered"] = "u", told
    bus.own(NETWORK)
    assert senses.is_metered() is expected
    assert await Metered("auto", SystemClock()).ask() is expected


async def test_without_networkmanager_nobody_knows_unless_the_person_says(monkeypatch, tmp_path):
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    assert await Metered("auto", SystemClock()).ask() is None
    assert await Metered("yes", SystemClock()).ask() is True
    assert await Metered("no", SystemClock()).ask() is False


def test_upower_tells_where_the_kernel_shows_no_supplies(bus, senses):
    bus.answers[UPOWER, "OnBattery"] = "b", True
    bus.own(UPOWER)
    assert senses.on_battery() is True


def test_the_desktop_tells_since_when_nobody_has_touched_it(bus, senses):
    assert senses.user_idle_s() is None
    bus.answers[LOGIN, "IdleHint"] = "b", False
    bus.answers[LOGIN, "IdleSinceHintMonotonic"] = "t", 0
    bus.own(LOGIN)
    assert senses.user_idle_s() == 0.0
    bus.answers[LOGIN, "IdleHint"] = "b", True
    bus.answers[LOGIN, "IdleSinceHintMonotonic"] = "t", int((time.monotonic() - 60) * 1e6)
    assert senses.user_idle_s() == pytest.approx(60, abs=5)
    bus.answers[SCREEN_SAVER, "GetSessionIdleTime"] = "u", 7000
    bus.own(SCREEN_SAVER)
    assert senses.user_idle_s() == 7.0
    bus.answers[MUTTER, "GetIdletime"] = "t", 4000
    bus.own(MUTTER)
    assert senses.user_idle_s() == 4.0


def test_an_answer_of_another_type_is_none(bus, senses):
    bus.answers[GAME_MODE, "ClientCount"] = "s", "many"
    bus.answers[UPOWER, "OnBattery"] = "s", "yes"
    bus.own(GAME_MODE)
    bus.own(UPOWER)
    assert senses.in_game_mode() is None
    assert senses.on_battery() is None


def test_a_bus_that_ends_is_no_error(bus: PrivateBus, senses):
    bus.answers[GAME_MODE, "ClientCount"] = "i", 1
    bus.own(GAME_MODE)
    assert senses.in_game_mode() is True
    bus.close()
    assert senses.in_game_mode() is None


@pytest.fixture
def screen():
    """An X server without a window manager."""
    for program in ("Xvfb", "xprop"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program} (Debian packages xvfb and x11-utils)")
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", "320x200x24"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    yield f":{server.stdout.readline().strip()}"
    server.terminate()
    server.wait(10)
    server.stdout.close()


def test_a_window_that_fills_the_screen_is_seen_with_its_program(screen, tmp_path):
    senses = LinuxSenses(tmp_path, display=screen)

    def put(name: str, kind: str, value: str) -> None:
        words = ["xprop", "-display", screen, "-root", "-f", name, kind, "-set", name, value]
        subprocess.run(words, check=True)

    assert senses.full_screen() is None
    window = (
        subprocess.run(
            ["xwininfo", "-display", screen, "-root"], check=True, capture_output=True, text=True
        )
        .stdout.split("Window id: ")[1]
        .split()[0]
    )
    put("_NET_ACTIVE_WINDOW", "32x", window)  # the root, as if it were somebody's window
    assert senses.full_screen() is None
    put("_NET_WM_STATE", "32a", "_NET_WM_STATE_FULLSCREEN")
    assert senses.full_screen() == ""
    with subprocess.Popen(["sleep", "60"]) as program:
        put("_NET_WM_PID", "32c", str(program.pid))
        assert senses.full_screen() == "sleep"
        program.kill()
    put("_NET_WM_STATE", "32a", "_NET_WM_STATE_ABOVE")
    assert senses.full_screen() is None
    senses.close()


def test_without_an_x_server_nothing_fills_the_screen(tmp_path):
    senses = LinuxSenses(tmp_path, display=":4711")
    assert senses.full_screen() is None
    senses.close()
