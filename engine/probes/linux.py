"""Linux: sysfs, D-Bus services where they run, and the X server."""

from __future__ import annotations

import os
import time
from pathlib import Path

from engine.probes.dbus import Bus
from engine.probes.power_supply import on_battery
from engine.probes.x11 import Screen

_POWER_SUPPLIES = Path("/sys/class/power_supply")
_UPOWER = ("org.freedesktop.UPower", "/org/freedesktop/UPower", "org.freedesktop.UPower")
_NETWORK = (
    "org.freedesktop.NetworkManager",
    "/org/freedesktop/NetworkManager",
    "org.freedesktop.NetworkManager",
)
_METERED = {1: True, 2: False, 3: True, 4: False}
"""NMMetered: yes, no, and the same two guessed; 0 is unknown."""
_GAME_MODE = (
    "com.feralinteractive.GameMode",
    "/com/feralinteractive/GameMode",
    "com.feralinteractive.GameMode",
)
_IDLE_MS = (
    (
        "org.gnome.Mutter.IdleMonitor",
        "/org/gnome/Mutter/IdleMonitor/Core",
        "org.gnome.Mutter.IdleMonitor",
        "GetIdletime",
    ),
    (
        "org.freedesktop.ScreenSaver",
        "/org/freedesktop/ScreenSaver",
        "org.freedesktop.ScreenSaver",
        "GetSessionIdleTime",
    ),
)
_LOGIN = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")


class LinuxSenses:
    """See `engine.probes.senses.Senses`.

    Args:
        power_supplies: Where the kernel shows batteries.
        display: The X server's name; None: that of the environment.
    """

    def __init__(self, power_supplies: Path = _POWER_SUPPLIES, display: str | None = None) -> None:
        self._power_supplies = power_supplies
        self._session = Bus("SESSION")
        self._system = Bus("SYSTEM")
        self._screen = Screen(display or os.environ.get("DISPLAY", ""))

    def on_battery(self) -> bool | None:
        """See `Senses`."""
        told = on_battery(self._power_supplies)
        if told is None:
            told = self._system.get(*_UPOWER, "OnBattery")
        return told if isinstance(told, bool) else None

    def is_metered(self) -> bool | None:
        """See `Senses`."""
        return _METERED.get(self._system.get(*_NETWORK, "Metered"))

    def in_game_mode(self) -> bool | None:
        """See `Senses`."""
        clients = self._session.get(*_GAME_MODE, "ClientCount")
        return clients > 0 if isinstance(clients, int) else None

    def full_screen(self) -> str | None:
        """See `Senses`. Wayland shows windows to nobody, so there only programs under Xwayland are seen."""
        return self._screen.full_screen()

    def user_idle_s(self) -> float | None:
        """See `Senses`."""
        for question in _IDLE_MS:
            idle_ms = self._session.call(*question)
            if isinstance(idle_ms, int):
                return idle_ms / 1000
        is_idle = self._system.get(*_LOGIN, "IdleHint")
        since_us = self._system.get(*_LOGIN, "IdleSinceHintMonotonic")
        if not isinstance(is_idle, bool) or not isinstance(since_us, int):
            return None
        return max(0.0, time.monotonic() - since_us / 1e6) if is_idle else 0.0

    def close(self) -> None:
        """See `Senses`."""
        self._session.close()
        self._system.close()
        self._screen.close()
