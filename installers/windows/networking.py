"""Letting others connect to this computer directly: only on request, and taken back as a whole.

By default WSL's network reaches out and nothing reaches in; Shoal's engine then works through other
members. Sharing the computer's own network ("mirrored") is a setting of all of WSL, and a port has to
be opened for it in the firewall.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PureWindowsPath

PORT = 31330
RULE = "Shoal"
MARK = "# Set by Shoal's setup, so that others can connect to its engine:"
_LINE = "networkingMode=mirrored"
_WSL_MACHINES = "{40E0AC32-46A5-438A-A0B2-2B479E8F2E90}"
"""What Windows calls the virtual machines of WSL."""


def with_mirrored(text: str) -> str:
    """The contents of `.wslconfig` with mirrored networking; a choice of the person's stays."""
    if re.search(r"(?im)^\s*networkingMode\s*=", text):
        return text
    ours = f"{MARK}\n{_LINE}\n"
    section = re.search(r"(?im)^\s*\[wsl2\][^\n]*(?:\n|$)", text)
    if section is None:
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}[wsl2]\n{ours}"
    head = text[: section.end()]
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}{ours}{text[section.end() :]}"


def without_mirrored(text: str) -> str:
    """The contents without what `with_mirrored` added; everything else as it was."""
    text = text.replace(f"{MARK}\n{_LINE}\n", "")
    return "" if text.strip() == "[wsl2]" else text


def is_mirrored(file: Path) -> bool:
    """Whether `.wslconfig` asks for mirrored networking; a choice of the person's may say otherwise.

    Raises:
        OSError: It cannot be read.
    """
    text = file.read_bytes().decode("utf-8", "replace") if file.exists() else ""
    return bool(re.search(r"(?im)^\s*networkingMode\s*=\s*mirrored\s*(?:#.*)?$", text))


def powershell(script: str) -> tuple[str, ...]:
    """Windows' own PowerShell with a script, and no other program that a folder in PATH may hold."""
    windows = os.environ.get("SYSTEMROOT", r"C:\Windows")
    program = PureWindowsPath(windows, "System32", "WindowsPowerShell", "v1.0", "powershell.exe")
    return (str(program), "-NoProfile", "-NonInteractive", "-Command", script)


def firewall_command(*, is_open: bool) -> tuple[str, ...]:
    """What opens the engine's port to others, or closes it; needs an administrator's rights.

    Its exit code is 0 only when all of it is done; closing what is closed is.
    """
    find = f"Get-NetFirewallHyperVRule -Name '{RULE}' -ErrorAction SilentlyContinue"
    remove = f"{find} | Remove-NetFirewallHyperVRule -ErrorAction Stop"
    add = (
        f"New-NetFirewallHyperVRule -Name '{RULE}' -DisplayName 'Shoal' -Direction Inbound "
        f"-VMCreatorId '{_WSL_MACHINES}' -Protocol TCP -LocalPorts {PORT} -Action Allow -ErrorAction Stop"
    )
    work = f"{remove}; {add}" if is_open else remove
    # Else a rule that is not there would count as a failure; a real one ends the script before.
    return powershell(f"{work}; exit 0")


def change_settings(file: Path, *, is_mirrored: bool) -> bool:
    """Change `.wslconfig`; returns whether anything was changed.

    Raises:
        OSError: It cannot be written.
    """
    # Windows' editors write other encodings, too; what is not ours has to stay as it is.
    before = file.read_bytes().decode("utf-8", "surrogateescape") if file.exists() else ""
    text = before.replace("\r\n", "\n")
    after = with_mirrored(text) if is_mirrored else without_mirrored(text)
    if after == text:
        return False
    if not after:
        file.unlink()
        return True
    if "\r\n" in before:
        after = after.replace("\n", "\r\n")
    file.write_bytes(after.encode("utf-8", "surrogateescape"))
    return True
