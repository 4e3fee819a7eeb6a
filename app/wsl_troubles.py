"""Why WSL cannot be used, read from what `wsl.exe` said, and told in one sentence.

Pure, and standard library only. What `wsl.exe` prints is in the person's language, so that nothing is
read from it but names and numbers of errors, and addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Trouble(StrEnum):
    """Why WSL cannot be used as it is."""

    ABSENT = "absent"
    NEEDS_RESTART = "needs restart"
    NO_VIRTUALISATION = "no virtualisation"
    KERNEL_MISSING = "kernel missing"
    VERSION_1 = "version 1"
    NO_DISTRIBUTION = "no distribution"
    NAME_TAKEN = "name taken"
    DISK_FULL = "disk full"
    TIMED_OUT = "timed out"
    UNKNOWN = "unknown"


_SIGNS: tuple[tuple[Trouble, tuple[str, ...]], ...] = (
    (
        Trouble.ABSENT,
        ("WSL_E_WSL_OPTIONAL_COMPONENT_REQUIRED", "0x8007019e", "aka.ms/wslinstall"),
    ),
    (Trouble.NEEDS_RESTART, ("0x80070bc2", "ERROR_SUCCESS_REBOOT_REQUIRED", "0xc004000d")),
    (
        Trouble.NO_VIRTUALISATION,
        ("HCS_E_HYPERV_NOT_INSTALLED", "0x80370102", "enablevirtualization", "0x80370114"),
    ),
    (Trouble.KERNEL_MISSING, ("aka.ms/wsl2kernel", "0x800701bc")),
    (Trouble.NO_DISTRIBUTION, ("WSL_E_DISTRO_NOT_FOUND",)),
    (Trouble.NAME_TAKEN, ("ERROR_ALREADY_EXISTS", "0x800700b7")),
    (Trouble.DISK_FULL, ("0x80070070", "ERROR_DISK_FULL", "No space left on device")),
)
"""What stands in the answers in every language: names and numbers of errors, addresses."""
_NOT_INSTALLED = 50
"""Exit code of the `wsl.exe` that comes with a Windows that has no WSL."""
OVER_LIMIT = -1000
"""Stands for the exit code of a call that we ended."""


def trouble_in(code: int, text: str) -> Trouble | None:
    """What an answer of `wsl.exe` means, whatever the language it was given in."""
    if code in (0, OVER_LIMIT):
        return Trouble.TIMED_OUT if code else None
    lowered = text.lower()
    for trouble, signs in _SIGNS:
        if any(sign.lower() in lowered for sign in signs):
            return trouble
    return Trouble.ABSENT if code == _NOT_INSTALLED else Trouble.UNKNOWN


def sentence(
    trouble: Trouble, tr: Callable[[str], str] = lambda text: text, *, detail: str = ""
) -> str:
    """What happened, why, and what to do.

    Args:
        trouble: What happened.
        tr: Says it in the person's language.
        detail: The words of `wsl.exe`; used where we know no better.
    """
    match trouble:
        case Trouble.ABSENT:
            return tr("Shoal's engine needs the Windows Subsystem for Linux (WSL), which is not "
                      "turned on; start Shoal's setup again, which turns it on if you agree.")  # fmt: skip
        case Trouble.NEEDS_RESTART:
            return tr("The Windows Subsystem for Linux is installed but works only after a restart; "
                      "restart the computer (restart, not shut down).")  # fmt: skip
        case Trouble.NO_VIRTUALISATION:
            return tr("The Windows Subsystem for Linux cannot start, because virtualisation is turned "
                      "off; turn on VT-x or AMD-V (SVM) in the computer's firmware settings and the "
                      "Virtual Machine Platform in Windows' features, then start Shoal again.")  # fmt: skip
        case Trouble.KERNEL_MISSING:
            return tr("The Windows Subsystem for Linux has no kernel for version 2; run "
                      "`wsl --update` in a terminal, then start Shoal's setup again.")  # fmt: skip
        case Trouble.VERSION_1:
            return tr("Shoal's Linux runs under WSL version 1, which its engine cannot use; start "
                      "Shoal's setup again, which changes this to version 2.")  # fmt: skip
        case Trouble.NO_DISTRIBUTION:
            return tr("The Linux that Shoal's engine runs in is gone from WSL; start Shoal's setup "
                      "again, which puts it back.")  # fmt: skip
        case Trouble.NAME_TAKEN:
            return tr("WSL has a distribution called Shoal already, which this setup did not make; "
                      "rename or remove it, then start Shoal's setup again.")  # fmt: skip
        case Trouble.DISK_FULL:
            return tr("The disk that Shoal's Linux is on is full; free some space, then try again.")
        case Trouble.TIMED_OUT:
            return tr("The Windows Subsystem for Linux does not answer; restart the computer, then "
                      "start Shoal again.")  # fmt: skip
        case Trouble.UNKNOWN:
            said = " ".join(detail.split())[-300:] or "–"
            return tr("The Windows Subsystem for Linux failed and said “{detail}”; restart the "
                      "computer, and start Shoal's setup again if that does not help.").format(
                detail=said
            )  # fmt: skip
