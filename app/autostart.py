"""Start at login, in the way of each system; off until somebody chooses it.

The system's own switch is the only memory: what is turned off there stays off, because nothing but a
click in our settings ever writes the entry.
"""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from pathlib import Path

from app.desktop_entries import entry_text
from app.installed import own_command

ENTRY = "shoal.desktop"
WINDOWS_RUN_KEY = r"Software\Microsoft\Windows\CurrentVersion\Run"
WINDOWS_NAME = "Shoal"


def is_supported() -> bool:
    """Whether this system has a place for it that we know."""
    return sys.platform.startswith("linux") or sys.platform == "win32"


def is_on() -> bool:
    """Whether Shoal starts at login."""
    if sys.platform == "win32":
        return _windows_value() is not None
    return _entry_is_on()


def _entry_is_on() -> bool:
    entry = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        entry.read(_entry_file(), encoding="utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError):
        return False
    if not entry.has_section("Desktop Entry"):
        return False
    section = entry["Desktop Entry"]
    # Desktops turn an entry off by these two.
    return (
        section.get("Hidden", "false").lower() != "true"
        and section.get("X-GNOME-Autostart-enabled", "true").lower() != "false"
    )


def turn(*, on: bool) -> None:
    """Start at login, or do so no longer.

    Raises:
        OSError: The entry cannot be written or removed.
    """
    if sys.platform == "win32":
        _turn_on_windows(on=on)
    else:
        _turn_entry(on=on)


def _turn_entry(*, on: bool) -> None:
    file = _entry_file()
    if not on:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    comment = "Runs large language models together"
    file.write_text(entry_text(comment, "X-GNOME-Autostart-enabled=true"), encoding="utf-8")


def _entry_file() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "autostart" / ENTRY


if sys.platform == "win32":
    import winreg

    def _windows_value() -> str | None:
        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, WINDOWS_RUN_KEY) as key:
                return str(winreg.QueryValueEx(key, WINDOWS_NAME)[0])
        except OSError:
            return None

    def _turn_on_windows(*, on: bool) -> None:
        access = winreg.KEY_SET_VALUE
        with winreg.OpenKey(winreg.HKEY_CURRENT_USER, WINDOWS_RUN_KEY, 0, access) as key:
            if on:
                command = subprocess.list2cmdline(own_command())
                winreg.SetValueEx(key, WINDOWS_NAME, 0, winreg.REG_SZ, command)
            elif _windows_value() is not None:
                winreg.DeleteValue(key, WINDOWS_NAME)
