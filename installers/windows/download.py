"""Fetching one large file: it goes on where it stopped, and counts only with the right hash."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from installers.setup_steps.report import SetupFailed

WAITS_S = (1.0, 3.0, 10.0, 30.0)
"""Between attempts that brought nothing."""
SILENCE_LIMIT_S = 30.0
_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Source:
    """What to fetch."""

    urls: tuple[str, ...]
    """Places that have the same file."""
    sha256: str
    size_bytes: int


def fetch(source: Source, target: Path, name: str, progress: Callable[[float, str], None]) -> None:
    """Have `source` in `target`.

    Args:
        source: What to fetch; what is larger than it says is refused.
        target: Where it goes; what has come of it so far is beside it, in `.part`.
        name: What a person calls it.
        progress: Takes the share that is there, and a text. Whatever it raises ends this.

    Raises:
        SetupFailed: It cannot be reached, or is not what it should be.
        OSError: The disk does not take it.
    """
    if _sha256(target) == source.sha256:
        return
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    reason, failures = "", 0
    while True:
        url = source.urls[failures % len(source.urls)]
        before = _size(part)
        try:
            _append(url, part, source.size_bytes, lambda share: progress(share, f"Fetching {name}"))
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            ConnectionError,
            TimeoutError,
        ) as error:
            reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        if _size(part) == source.size_bytes:
            break
        failures = 0 if _size(part) > before else failures + 1
        if failures >= len(WAITS_S):
            raise SetupFailed(
                f"{name[:1].upper()}{name[1:]} cannot be fetched ({reason or 'the connection ends early'}); "
                "check the internet connection, and the proxy if there is one, then start the setup "
                "again: it goes on where it stopped."
            )
        progress(_size(part) / source.size_bytes, f"Waiting for the connection to fetch {name}")
        time.sleep(WAITS_S[failures])
    if _sha256(part) != source.sha256:
        part.unlink()
        raise SetupFailed(
            f"{name[:1].upper()}{name[1:]} arrived damaged or is not what this setup was made for, so "
            "it was deleted; start the setup again, and if that does not help, get a newer one."
        )
    part.replace(target)


def _append(url: str, part: Path, size_bytes: int, progress: Callable[[float], None]) -> None:
    have = _size(part)
    if have > size_bytes:
        part.unlink()
        have = 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=SILENCE_LIMIT_S) as answer:  # noqa: S310 - pinned
        if answer.status != 206:
            have = 0
        with part.open("ab" if have else "wb") as file:
            while have < size_bytes and (chunk := answer.read(_CHUNK_BYTES)):
                file.write(chunk[: size_bytes - have])
                have += len(chunk)
                progress(have / size_bytes)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _sha256(file: Path) -> str:
    if not file.exists():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
