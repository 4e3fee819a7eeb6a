"""What helps others to find a fault, without what tells them who and where the person is.

Standard library and the schema only: the commands use it without an engine too.
"""

from __future__ import annotations

import getpass
import io
import json
import os
import platform
import re
import socket
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from engine.core.sentences import Sentence
from engine.localapi.running import Home
from engine.localapi.said import said
from engine.localapi.statistics import DiagnosticsEntry

MAX_LOG_BYTES: Final = 2 << 20
_LEAST_NAME: Final = 3
"""Shorter names of people and computers are parts of other words."""
_PATTERNS: Final = (
    (re.compile(r"shoal://\S+"), "shoal://…"),
    (
        re.compile(
            r"(?i)\b(bearer|token|passphrase|password|key)([\"']?\s*[:=]\s*|\s+)[\"']?[\w+/=.-]{12,}"
        ),
        r"\1\2…",
    ),
    (re.compile(r"\bhf_[A-Za-z0-9]{10,}"), "hf_…"),
    (re.compile(r"://[^/\s:@]+:[^/\s@]+@"), "://…@"),  # a proxy's user and password
    (re.compile(r"\b(?!127\.0\.0\.1\b|0\.0\.0\.0\b)\d{1,3}(?:\.\d{1,3}){3}\b"), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}(?![\w:])"), "<address>"),
    (
        re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){1,6}:(?:[0-9a-fA-F]{1,4})?(?![\w:])"),
        "<address>",
    ),
    (re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b"), "<address>"),
    (re.compile(r"\bQm[1-9A-HJ-NP-Za-km-z]{34}([1-9A-HJ-NP-Za-km-z]{10})\b"), r"…\1"),
)


def redact(text: str) -> str:
    """The text without addresses, keys, invites, and names of the person, computer and home."""
    for name, instead in _own_names().items():
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", instead, text)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def log_tail(home: Home, lines: int) -> tuple[str, ...]:
    """The newest lines of the engine's log, redacted; none where there is no log."""
    newest = _tail(home.log_file, MAX_LOG_BYTES).splitlines()[-lines:]
    return tuple(redact("\n".join(newest)).splitlines())


def entries(home: Home, version: str, facts: Mapping[str, Any]) -> tuple[DiagnosticsEntry, ...]:
    """The files of the archive.

    Args:
        home: Where Shoal's files are.
        version: Shoal's.
        facts: By file name without ending: what the engine or the checks say, as JSON has it.
    """
    machine = {
        "shoal": version,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }
    found = [
        _entry("machine.json", Sentence("The system and versions"), json.dumps(machine, indent=2))
    ]
    found += [
        _entry(
            f"{name}.json",
            Sentence("What the engine says of its {name}", name=name),
            json.dumps(value, indent=2),
        )
        for name, value in facts.items()
    ]
    for file, about in (
        (home.settings_file, Sentence("The settings")),
        (home.profile_file, Sentence("What was measured of this machine")),
        (home.log_file.with_name(f"{home.log_file.name}.1"), Sentence("The log before")),
        (home.log_file, Sentence("The log")),
    ):
        if file.is_file():
            found.append(_entry(file.name, about, _tail(file, MAX_LOG_BYTES)))
    return tuple(found)


def archive(files: tuple[DiagnosticsEntry, ...]) -> bytes:
    """The files as a zip."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in files:
            packed.writestr(f"shoal-diagnostics/{file.name}", file.text)
    return content.getvalue()


def _entry(name: str, about: str, text: str) -> DiagnosticsEntry:
    return DiagnosticsEntry(name=name, about=about, about_said=said(about), text=redact(text))


def _own_names() -> dict[str, str]:
    names = {str(Path.home()): "~"}
    if root := os.environ.get("SHOAL_HOME"):
        names[root.rstrip("/")] = "<SHOAL_HOME>"
    others = {_user(): "<user>", socket.gethostname(): "<computer>"}
    names |= {
        name: instead
        for name, instead in others.items()
        if len(name) >= _LEAST_NAME and name not in ("root", "localhost")
    }
    # The longest first: a home's path holds the person's name.
    return dict(sorted(names.items(), key=lambda pair: -len(pair[0])))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""  # a container may know nobody of this number


def _tail(file: Path, max_bytes: int) -> str:
    try:
        with file.open("rb") as opened:
            size_bytes = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, size_bytes - max_bytes))
            text = opened.read(max_bytes).decode(errors="replace")
    except OSError:
        return ""
    return text if size_bytes <= max_bytes else text.partition("\n")[2]
