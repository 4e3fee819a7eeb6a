"""Fetch one large file over HTTP: resumes where it was cut, also by another process."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx2
from huggingface_hub import constants, get_session
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

from engine.core.errors import ModelCorrupt
from engine.core.whole_file import sync_directory
from engine.models.storage import sha256_of_file

_log = logging.getLogger(__name__)

_ATTEMPTS = 5
"""Failures in a row, without a byte gained, before we give up."""
_PAUSE_S = 1.0


def download(
    url: str,
    path: Path,
    *,
    size_bytes: int,
    sha256: str,
    on_bytes: Callable[[int], None],
    headers: Mapping[str, str],
) -> None:
    """Fetch `url` to `path`, which appears only when it is complete and has the right hash.

    huggingface_hub's own download starts a file anew when it was cut, and a shard has gigabytes.
    Its session is used, so that the person's proxy and certificates apply.

    Args:
        url: Where the file is; redirects are followed.
        path: A part that an earlier call left beside it is continued.
        size_bytes: What the file must have.
        sha256: What the file must hash to; after a mismatch it is fetched once more from the start.
        on_bytes: Bytes now on disk.
        headers: To send; a token among them goes only to the host of `url`.

    Raises:
        ModelCorrupt: Twice the wrong content.
        OSError, httpx2.HTTPError: The disk, or the other side; the part stays for the next call,
            unless the disk failed.
    """
    part = _part(path)
    for _ in range(2):
        try:
            _fill(url, part, size_bytes, on_bytes, headers)
        except OSError as error:
            if not isinstance(error, HfHubHTTPError):
                part.unlink(missing_ok=True)  # what has filled the disk is given back
            raise
        if part.stat().st_size == size_bytes and sha256_of_file(part) == sha256:
            part.replace(path)
            sync_directory(path.parent)
            return
        _log.warning("The file from %s has the wrong content; fetching it again", url)
        part.unlink()
    raise ModelCorrupt(
        f"The file at {url} does not have the content that its repository promises; try again "
        "later, or choose another source."
    )


def part_bytes(path: Path) -> int:
    """What an earlier call has left of the file."""
    part = _part(path)
    return part.stat().st_size if part.exists() else 0


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.shoal-part")


def _fill(
    url: str,
    part: Path,
    size_bytes: int,
    on_bytes: Callable[[int], None],
    headers: Mapping[str, str],
) -> None:
    """Append to the part until it has all bytes, starting again where a connection broke."""
    failures, ever_gained = 0, False
    while True:
        have_bytes = part.stat().st_size if part.exists() else 0
        if have_bytes > size_bytes:
            part.unlink()
            have_bytes = 0
        on_bytes(have_bytes)
        if have_bytes == size_bytes:
            return
        try:
            _receive(url, part, have_bytes, on_bytes, headers)
        except (httpx2.TransportError, HfHubHTTPError) as error:
            if isinstance(error, HfHubHTTPError):
                status = error.response.status_code
                if status == 416:
                    return  # the file is shorter than promised; the caller sees it
                if status not in (408, 429) and status < 500:
                    raise
            gained = (part.stat().st_size if part.exists() else 0) > have_bytes
            failures = 0 if gained else failures + 1
            ever_gained |= gained
            nobody_there = isinstance(error, httpx2.ConnectError) and not ever_gained
            if failures >= _ATTEMPTS or nobody_there:
                raise
            _log.info("The download of %s was cut (%s); resuming", url, error)
            time.sleep(_PAUSE_S * max(1, failures))
        else:
            if part.stat().st_size <= have_bytes:
                return  # nothing came; the caller sees the size


def _receive(
    url: str,
    part: Path,
    have_bytes: int,
    on_bytes: Callable[[int], None],
    headers: Mapping[str, str],
) -> None:
    wanted = {**headers, "Accept-Encoding": "identity"}
    if have_bytes:
        wanted["Range"] = f"bytes={have_bytes}-"
    timeout_s = constants.HF_HUB_DOWNLOAD_TIMEOUT
    with get_session().stream("GET", url, headers=wanted, timeout=timeout_s) as response:
        hf_raise_for_status(response)
        if have_bytes and response.status_code != 206:
            have_bytes = 0  # the server does not resume: it sends all again
        with part.open("ab" if have_bytes else "wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
                have_bytes += len(chunk)
                on_bytes(have_bytes)
            file.flush()
            os.fsync(file.fileno())
