"""Fetch the list of versions, or a package, in a child process; see `engine.models.child`."""

from __future__ import annotations

import argparse
import asyncio
import errno
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from engine.core.errors import DiskFull, ModelCorrupt, UpdateRefused, UpdateUnavailable
from engine.core.sentences import Sentence
from engine.localapi.schema import Progress
from engine.models.child import answering, child_parser, run_child
from engine.models.storage import FetchLimits, sha256_of_file
from engine.models.turns import Take
from engine.models.way_out import environment, through_proxy
from engine.updates.manifest import MAX_LIST_BYTES, PackageFile

_MODULE: Final = "engine.updates.fetch"
_LIST_LIMIT_S: Final = 30.0

OnProgress = Callable[[Progress], None]
Turn = Callable[[int], Awaitable[int]]


async def fetch_list(url: str, folder: Path, limits: FetchLimits, take: Turn) -> bytes:
    """The list as it lies there, unchecked.

    Raises:
        UpdateUnavailable: It cannot be had now.
        UpdateRefused: It is far too long for one.
    """
    text: str = await _run(["--url", url], folder, limits, lambda _: None, take)
    return text.encode("latin-1")


async def fetch_package(
    url: str,
    path: Path,
    file: PackageFile,
    limits: FetchLimits,
    on_progress: OnProgress,
    take: Turn,
) -> None:
    """Bring a package to `path`, going on where an earlier call was cut.

    Raises:
        UpdateUnavailable: It cannot be had now.
        UpdateRefused: It is not the file that was signed.
        DiskFull: There is no room for it, or for what it installs.
    """
    arguments = ["--url", url, "--to", str(path)]
    arguments += ["--size-bytes", str(file.size_bytes), "--sha256", file.sha256]
    arguments += ["--installed-bytes", str(file.installed_bytes)]
    arguments += ["--free-bytes", str(limits.disk_free_bytes)]
    await _run(arguments, path.parent, limits, on_progress, take)


async def _run(
    arguments: list[str], folder: Path, limits: FetchLimits, on_progress: OnProgress, take: Turn
) -> Any:
    return await run_child(
        _MODULE,
        arguments,
        environment=await asyncio.to_thread(environment, limits.proxy, limits.ca_file, folder),
        on_progress=on_progress,
        take=take,
        died=UpdateUnavailable(
            "Fetching the update ended unexpectedly; see the log, and try again."
        ),
    )


def main(arguments: list[str] | None = None) -> int:
    """The child. Exit code 0, or 1 after an error line."""
    parser = child_parser(_MODULE, __doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--to", type=Path, help="a package's file; without it: the list")
    for name in ("--size-bytes", "--installed-bytes", "--free-bytes"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--sha256", default="")
    options = parser.parse_args(arguments)
    return answering(options, lambda show, take: _fetch(options, show, take))


def _fetch(options: argparse.Namespace, on_progress: OnProgress, take: Take) -> str:
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError

    from engine.models.hub_client import take_turns

    take_turns(take)
    try:
        if options.to is None:
            return _list(options.url)
        _package(options, on_progress)
    except ModelCorrupt as error:
        raise UpdateRefused(
            f"The package at {options.url} is not the one that was signed, so it was deleted; try "
            "again later, and if it stays so, tell those who publish Shoal."
        ) from error
    except HfHubHTTPError as error:
        raise UpdateUnavailable(
            f"{options.url} cannot be fetched now (HTTP {error.response.status_code}); try again later."
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise UpdateUnavailable(
            f"{options.url} cannot be reached now{through_proxy(options.url)} "
            f"({type(error).__name__}); check the connection, or model.proxy in the settings, and try "
            "again later."
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"The disk of {options.to} is full, so the update was not fetched; free some space."
            ) from error
        raise UpdateUnavailable(
            f"The update cannot be written to {options.to} ({error.strerror}); correct the "
            "permissions of its folder."
        ) from error
    return ""


def _list(url: str) -> str:
    from huggingface_hub import get_session
    from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

    data = b""
    with get_session().stream("GET", url, timeout=_LIST_LIMIT_S, follow_redirects=True) as response:
        hf_raise_for_status(response)
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) > MAX_LIST_BYTES:
                raise UpdateRefused(
                    f"What lies at {url} is far too long for a list of versions; check updates.url "
                    "in the settings."
                )
    return data.decode("latin-1")  # JSON lines carry text; the signature is checked over the bytes


def _package(options: argparse.Namespace, on_progress: OnProgress) -> None:
    from engine.models.download import download, part_bytes

    path: Path = options.to
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob("shoal[-_]*"):
        if not old.name.startswith(path.name):  # of another version; a part of this one goes on
            old.unlink()
    if path.exists():  # fetched before, and not installed yet
        if sha256_of_file(path) == options.sha256:
            return
        path.unlink()
    missing_bytes = options.size_bytes - part_bytes(path)
    needed_bytes = missing_bytes + options.installed_bytes + options.free_bytes
    free_bytes = shutil.disk_usage(path.parent).free
    if free_bytes < needed_bytes:
        raise DiskFull(
            f"The update needs {(needed_bytes - free_bytes) / 1e6:,.0f} MB more than the disk of "
            f"{path.parent} can give; free some space."
        )
    what = Sentence("Downloading the update")
    download(
        options.url,
        path,
        size_bytes=options.size_bytes,
        sha256=options.sha256,
        on_bytes=lambda done: on_progress(Progress.of(what, done, options.size_bytes, "bytes")),
        headers={},
    )


if __name__ == "__main__":
    sys.exit(main())
