"""Windows, through its own libraries.

Untested: written after Microsoft's documentation, and not yet run on that system.
"""

from __future__ import annotations

import ctypes
from ctypes import wintypes
from typing import Any

import psutil

_QUNS_RUNNING_D3D_FULL_SCREEN = 3
_MONITOR_DEFAULT_TO_NULL = 0
_SHELL_CLASSES = ("Progman", "WorkerW")
"""The desktop itself covers the screen too."""


class _LastInput(ctypes.Structure):
    _fields_ = (("cbSize", wintypes.UINT), ("dwTime", wintypes.DWORD))


class _PowerStatus(ctypes.Structure):
    _fields_ = (
        ("ACLineStatus", wintypes.BYTE),
        ("BatteryFlag", wintypes.BYTE),
        ("BatteryLifePercent", wintypes.BYTE),
        ("SystemStatusFlag", wintypes.BYTE),
        ("BatteryLifeTime", wintypes.DWORD),
        ("BatteryFullLifeTime", wintypes.DWORD),
    )


class _MonitorInfo(ctypes.Structure):
    _fields_ = (
        ("cbSize", wintypes.DWORD),
        ("rcMonitor", wintypes.RECT),
        ("rcWork", wintypes.RECT),
        ("dwFlags", wintypes.DWORD),
    )


class WindowsSenses:
    """See `engine.probes.senses.Senses`."""

    def __init__(self) -> None:
        libraries: Any = ctypes.windll  # type: ignore[attr-defined, unused-ignore]  # there alone
        self._user, self._kernel, self._shell = (
            libraries.user32,
            libraries.kernel32,
            libraries.shell32,
        )
        self._user.GetForegroundWindow.restype = wintypes.HWND
        self._user.MonitorFromWindow.restype = wintypes.HMONITOR
        self._user.MonitorFromWindow.argtypes = [wintypes.HWND, wintypes.DWORD]

    def on_battery(self) -> bool | None:
        """See `Senses`."""
        status = _PowerStatus()
        if not self._kernel.GetSystemPowerStatus(ctypes.byref(status)):
            return None
        return {0: True, 1: False}.get(status.ACLineStatus)

    def is_metered(self) -> bool | None:
        """See `Senses`: its answer needs COM, so the person's setting must do."""
        return None

    def in_game_mode(self) -> bool | None:
        """See `Senses`: a program that has the screen to itself, by Direct3D."""
        state = ctypes.c_int()
        if self._shell.SHQueryUserNotificationState(ctypes.byref(state)) != 0:
            return None
        return state.value == _QUNS_RUNNING_D3D_FULL_SCREEN

    def full_screen(self) -> str | None:
        """See `Senses`: borderless games are windows as large as their monitor."""
        window = self._user.GetForegroundWindow()
        monitor = self._user.MonitorFromWindow(window, _MONITOR_DEFAULT_TO_NULL) if window else None
        if not monitor or self._class_name(window) in _SHELL_CLASSES:
            return None
        place, info = wintypes.RECT(), _MonitorInfo(cbSize=ctypes.sizeof(_MonitorInfo))
        if not self._user.GetWindowRect(window, ctypes.byref(place)):
            return None
        if not self._user.GetMonitorInfoW(monitor, ctypes.byref(info)):
            return None
        if _corners(place) != _corners(info.rcMonitor):
            return None
        pid = wintypes.DWORD()
        self._user.GetWindowThreadProcessId(window, ctypes.byref(pid))
        try:
            return psutil.Process(pid.value).name()
        except psutil.Error:
            return ""

    def user_idle_s(self) -> float | None:
        """See `Senses`."""
        last = _LastInput(cbSize=ctypes.sizeof(_LastInput))
        if not self._user.GetLastInputInfo(ctypes.byref(last)):
            return None
        # Both count milliseconds in 32 bits and begin again after 50 days.
        return float((self._kernel.GetTickCount() - last.dwTime) % (1 << 32)) / 1000

    def close(self) -> None:
        """See `Senses`: nothing is held."""

    def _class_name(self, window: Any) -> str:
        name = ctypes.create_unicode_buffer(64)
        self._user.GetClassNameW(window, name, len(name))
        return name.value


def _corners(place: wintypes.RECT) -> tuple[int, int, int, int]:
    return place.left, place.top, place.right, place.bottom
