"""What only Windows itself can say or do, behind calls that a test can stand in for."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from app.wsl import NO_WINDOW
from installers.setup_steps.torch_build import find_driver
from installers.windows.checks import Computer
from installers.windows.networking import powershell

_RESTART_KEY = r"SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending"
_VIRTUALISATION_IN_FIRMWARE = 21  # PF_VIRT_FIRMWARE_ENABLED
_ADAPTERS = "(Get-CimInstance Win32_VideoController).PNPDeviceID"
_NVIDIA = "VEN_10DE"
_WAIT_FOR_PROGRAM, _NO_CONSOLE_ERRORS = 0x40, 0x400  # SEE_MASK_NOCLOSEPROCESS, SEE_MASK_FLAG_NO_UI
_DECLINED = 1223  # ERROR_CANCELLED
_FOREVER = 0xFFFFFFFF
_ASK_LIMIT_S = 60.0
_ELSEWHERE = "only Windows knows this"


class Declined(Exception):
    """The person, or the computer's rules, said no to an administrator's rights."""


class Machine:
    """This computer."""

    def look(self, folder: Path) -> Computer:
        """What Shoal will find here, for an installation in `folder`."""
        if sys.platform == "win32":
            driver = find_driver()
            return Computer(
                windows_build=sys.getwindowsversion().build,
                free_bytes=shutil.disk_usage(folder).free,
                driver=driver,
                has_card=driver is not None or _NVIDIA in self._powershell(_ADAPTERS).upper(),
            )
        raise NotImplementedError(_ELSEWHERE)

    def is_restart_pending(self) -> bool:
        """Whether Windows has installed parts that wait for a restart."""
        if sys.platform == "win32":
            import winreg

            try:
                winreg.CloseKey(winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _RESTART_KEY))
            except OSError:
                return False
            return True
        raise NotImplementedError(_ELSEWHERE)

    def can_virtualise(self) -> bool:
        """Whether the firmware lets virtual machines run; also true when one runs already."""
        if sys.platform == "win32":
            if ctypes.windll.kernel32.IsProcessorFeaturePresent(_VIRTUALISATION_IN_FIRMWARE):
                return True
            # Under a running hypervisor Windows itself no longer sees the processor's own feature.
            answer = self._powershell("(Get-CimInstance Win32_ComputerSystem).HypervisorPresent")
            return answer.strip().lower() == "true"
        raise NotImplementedError(_ELSEWHERE)

    def run_as_administrator(self, command: Sequence[str]) -> int:
        """Let Windows ask for an administrator's rights, run a program with them, and wait.

        Returns:
            The program's exit code.

        Raises:
            Declined: The question was answered with no.
        """
        if sys.platform == "win32":
            from ctypes import wintypes

            class Order(ctypes.Structure):
                _fields_ = (  # type: ignore[mutable-override]  # how ctypes wants it
                    ("size", wintypes.DWORD),
                    ("mask", ctypes.c_ulong),
                    ("window", wintypes.HWND),
                    ("verb", wintypes.LPCWSTR),
                    ("file", wintypes.LPCWSTR),
                    ("arguments", wintypes.LPCWSTR),
                    ("folder", wintypes.LPCWSTR),
                    ("show", ctypes.c_int),
                    ("instance", wintypes.HINSTANCE),
                    ("id_list", ctypes.c_void_p),
                    ("class_name", wintypes.LPCWSTR),
                    ("class_key", wintypes.HKEY),
                    ("hot_key", wintypes.DWORD),
                    ("icon", wintypes.HANDLE),
                    ("process", wintypes.HANDLE),
                )

            program, *arguments = command
            order = Order(
                size=ctypes.sizeof(Order),
                mask=_WAIT_FOR_PROGRAM | _NO_CONSOLE_ERRORS,
                verb="runas",
                file=program,
                arguments=subprocess.list2cmdline(arguments),
                show=0,
            )
            shell = ctypes.WinDLL("shell32", use_last_error=True)
            if not shell.ShellExecuteExW(ctypes.byref(order)):
                error = ctypes.get_last_error()
                raise Declined if error == _DECLINED else ctypes.WinError(error)
            code = wintypes.DWORD()
            kernel = ctypes.windll.kernel32
            kernel.WaitForSingleObject(wintypes.HANDLE(order.process), _FOREVER)
            kernel.GetExitCodeProcess(wintypes.HANDLE(order.process), ctypes.byref(code))
            kernel.CloseHandle(wintypes.HANDLE(order.process))
            return code.value
        raise NotImplementedError(_ELSEWHERE)

    def proxies(self) -> dict[str, str]:
        """The system's proxies, as variables that programs understand."""
        found = urllib.request.getproxies()
        return {
            f"{kind.upper()}_PROXY": url for kind, url in found.items() if kind in ("http", "https")
        }

    def _powershell(self, script: str) -> str:
        """What it prints; nothing when it cannot be asked, as by a company's rules."""
        try:
            return subprocess.run(
                powershell(script),
                capture_output=True,
                text=True,
                timeout=_ASK_LIMIT_S,
                check=False,
                creationflags=NO_WINDOW,
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return ""
