"""Clicking an invite opens Shoal: `shoal://` links and `.shoal` files, for this user alone.

Off until somebody chooses it, and never turned on by anything else, but that a package for Linux brings
an entry which says that Shoal can open them: it is on until turned off. What the desktop's own settings lead to
another program counts as off.
"""

from __future__ import annotations

import configparser
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
PACKAGES_ENTRY = "shoal.desktop"
"""Of an installed package."""
_CHOSEN, _REMOVED = "[Default Applications]", "[Removed Associations]"
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
    entries = {section: entries for section, type_, entries in _told() if type_ == TYPES[0]}
    if chosen := entries.get(_CHOSEN):
        has_own = chosen[0] == ENTRY and (_data() / "applications" / ENTRY).exists()
        return has_own or (chosen[0] == PACKAGES_ENTRY and _is_packaged())
    return _is_packaged() and PACKAGES_ENTRY not in entries.get(_REMOVED, ())


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
    if on and not _is_packaged():
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
    _choose(on=on, entry=PACKAGES_ENTRY if _is_packaged() else ENTRY)
    _update("update-desktop-database", entry.parent)
    _update("update-mime-database", kind.parent.parent)


def _choose(*, on: bool, entry: str) -> None:
    """Change who opens our types among the person's choices, and nothing else there.

    Args:
        on: Whether Shoal does.
        entry: Of Shoal; off, a package's is set aside, as it stays where it is.
    """
    before = _lines()
    after: list[str] = []
    aside = {type_: [entry] if entry == PACKAGES_ENTRY and not on else [] for type_ in TYPES}
    for line, (section, type_, entries) in zip(before, _told(), strict=True):
        if type_ in TYPES and section == _REMOVED:
            aside[type_] += [other for other in entries if other != PACKAGES_ENTRY]
            continue
        is_ours = entries[:1] in ((ENTRY,), (PACKAGES_ENTRY,))
        if not (type_ in TYPES and section == _CHOSEN and (on or is_ours)):
            after.append(line)
    if on:
        _insert(after, _CHOSEN, [f"{type_}={entry}" for type_ in TYPES])
    _insert(
        after, _REMOVED, [f"{name}={';'.join(others)};" for name, others in aside.items() if others]
    )
    if after != before:
        file = _choices_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join([*after, ""]), encoding="utf-8", errors="surrogateescape")


def _insert(lines: list[str], section: str, added: list[str]) -> None:
    if added and section not in lines:
        lines.append(section)
    if added:
        at = lines.index(section) + 1
        lines[at:at] = added


def _lines() -> list[str]:
    try:
        text = _choices_file().read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return []
    return text.splitlines()


def _told() -> list[tuple[str, str, tuple[str, ...]]]:
    """What each line of the person's choices says: (section, type, entries), empty where nothing."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    section = ""
    for line in _lines():
        section = line.strip() if line.startswith("[") else section
        type_, has_value, value = line.partition("=")
        entries = tuple(filter(None, (word.strip() for word in value.split(";"))))
        found.append((section, type_.strip(), entries) if has_value else ("", "", ()))
    return found


def _is_packaged() -> bool:
    """Whether this Shoal is of a package, whose entry among the programs says that it opens our types."""
    folders = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    for folder in (_data(), *map(Path, folders.split(":"))):
        entry = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            if not entry.read(folder / "applications" / PACKAGES_ENTRY, encoding="utf-8"):
                continue
        except (configparser.Error, UnicodeDecodeError):
            continue
        told = entry["Desktop Entry"] if entry.has_section("Desktop Entry") else {}
        program = told.get("TryExec", "")
        is_ours = program and os.path.realpath(program) == os.path.realpath(own_command()[0])
        return bool(is_ours) and TYPES[0] in told.get("MimeType", "").split(";")
    return False


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
