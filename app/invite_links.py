"""Clicking an invite opens Shoal: `shoal://` links and `.shoal` files, for this user alone.

Off until somebody chooses it, and never turned on by anything else. What the desktop's own settings
lead to another program counts as off.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from app.desktop_entries import entry_text
from app.installed import own_command

ENTRY = "shoal-invites.desktop"
TYPES = ("x-scheme-handler/shoal", "application/x-shoal-invite")
"""Of links and of files."""
_SECTION = "[Default Applications]"
_UPDATE_LIMIT_S = 20.0
_FILE_TYPE = f"""<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="{TYPES[1]}">
    <comment>Shoal invite</comment>
    <sub-class-of type="text/plain"/>
    <glob pattern="*.shoal"/>
  </mime-type>
</mime-info>
"""


def is_supported() -> bool:
    """Whether this system has a place for it that we know."""
    return sys.platform.startswith("linux") or sys.platform == "win32"


def is_on() -> bool:
    """Whether links open Shoal."""
    if sys.platform == "win32":
        return _is_registered()
    has_entry = (_data() / "applications" / ENTRY).exists()
    return has_entry and any(chosen == (TYPES[0], ENTRY) for _, chosen in _choices())


def turn(*, on: bool) -> None:
    """Let links and files open Shoal, or no longer.

    Raises:
        OSError: What says so cannot be written or removed.
    """
    if sys.platform == "win32":
        _register(on=on)
        return
    entry = _data() / "applications" / ENTRY
    kind = _data() / "mime" / "packages" / "shoal.xml"
    if on:
        entry.parent.mkdir(parents=True, exist_ok=True)
        types = f"MimeType={';'.join(TYPES)};"
        entry.write_text(
            entry_text("Opens invites to swarms", types, "NoDisplay=true", argument="%u"),
            encoding="utf-8",
        )
        kind.parent.mkdir(parents=True, exist_ok=True)
        kind.write_text(_FILE_TYPE, encoding="utf-8")
    else:
        entry.unlink(missing_ok=True)
        kind.unlink(missing_ok=True)
    _choose(on=on)
    _update("update-desktop-database", entry.parent)
    _update("update-mime-database", kind.parent.parent)


def _choose(*, on: bool) -> None:
    """Change who opens our types among the person's choices, and nothing else there."""
    before = _choices()
    after = [line for line, chosen in before if chosen is None or not (on or chosen[1] == ENTRY)]
    if on:
        if _SECTION not in after:
            after.append(_SECTION)
        at = after.index(_SECTION) + 1
        after[at:at] = [f"{type_}={ENTRY}" for type_ in TYPES]
    if after != [line for line, _ in before]:
        file = _choices_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join([*after, ""]), encoding="utf-8", errors="surrogateescape")


def _choices() -> list[tuple[str, tuple[str, str] | None]]:
    """The lines, and of those that say who opens one of our types: (type, entry)."""
    try:
        text = _choices_file().read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return []
    found: list[tuple[str, tuple[str, str] | None]] = []
    section = ""
    for line in text.splitlines():
        section = line.strip() if line.startswith("[") else section
        type_, _, entries = line.partition("=")
        is_ours = section == _SECTION and type_.strip() in TYPES
        found.append((line, (type_.strip(), entries.strip().split(";")[0]) if is_ours else None))
    return found


def _update(program: str, folder: Path) -> None:
    """Let the desktop read the folder again; without the program it does so by itself, but later."""
    if shutil.which(program) is not None and folder.exists():
        subprocess.run(
            [program, str(folder)], check=False, capture_output=True, timeout=_UPDATE_LIMIT_S
        )


def _data() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def _choices_file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "mimeapps.list"


if sys.platform == "win32":
    import winreg

    _CLASSES = r"Software\Classes"
    _NAMES = ("shoal", "Shoal.Invite")
    """Of links and of files."""

    def _command() -> str:
        return f'{subprocess.list2cmdline(own_command())} "%1"'

    def _is_registered() -> bool:
        path = rf"{_CLASSES}\shoal\shell\open\command"
        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, path) as key:
                return str(winreg.QueryValueEx(key, "")[0]) == _command()
        except OSError:
            return False

    def _register(*, on: bool) -> None:
        for name in _NAMES:
            root = rf"{_CLASSES}\{name}"
            if on:
                _set(root, "", "Shoal invite")
                _set(rf"{root}\shell\open\command", "", _command())
            else:
                for below in (r"\shell\open\command", r"\shell\open", r"\shell", ""):
                    _delete(root + below)
        if on:
            _set(rf"{_CLASSES}\shoal", "URL Protocol", "")
            _set(rf"{_CLASSES}\.shoal", "", "Shoal.Invite")
        else:
            _delete(rf"{_CLASSES}\.shoal")

    def _set(path: str, name: str, value: str) -> None:
        with winreg.CreateKey(winreg.HKEY_CURRENT_USER, path) as key:
            winreg.SetValueEx(key, name, 0, winreg.REG_SZ, value)

    def _delete(path: str) -> None:
        try:
            winreg.DeleteKey(winreg.HKEY_CURRENT_USER, path)
        except FileNotFoundError:
            return
