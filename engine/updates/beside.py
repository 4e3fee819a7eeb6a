"""Putting a version beside the one that runs: its own installer does that, we then stage it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from engine import __version__
from engine.core.errors import UpdateError
from engine.localapi import versions

_log = logging.getLogger(__name__)

_INSTALL_LIMIT_S: Final = 7200.0
"""It may have to download a new PyTorch."""
_KEPT_LOG_BYTES: Final = 4096


async def put_beside(file: Path, root: Path, version: str, environment: Mapping[str, str]) -> None:
    """Install a package beside the version that runs, and let the next start try it.

    Args:
        file: A package of the kind `run`, checked already.
        root: Where versions lie, see `engine.localapi.versions`.
        version: The one in the file.
        environment: Added to ours: how its downloads reach the internet.

    Raises:
        UpdateError: It could not be installed; the version that runs is as before.
    """
    try:
        output = await _run(["sh", str(file), "--", "--beside", str(root)], environment)
        if not (versions.folder_of(root, version) / "start.json").exists():
            raise UpdateError(
                f"The package of Shoal {version} did not install it; get it by hand.{output}"
            )
        await asyncio.to_thread(versions.stage, root, version)
        await asyncio.to_thread(_prune, root)
    except OSError as error:
        raise UpdateError(
            f"Shoal {version} could not be installed in {root} ({error.strerror}); free some space, or "
            "correct the permissions of the folder."
        ) from error


async def _run(command: list[str], environment: Mapping[str, str]) -> str:
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | dict(environment),
        start_new_session=True,
    )
    assert child.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(_INSTALL_LIMIT_S):
            while chunk := await child.stdout.read(65536):
                said = (said + chunk)[-_KEPT_LOG_BYTES:]
            await child.wait()
    except TimeoutError as error:
        raise UpdateError(
            "Installing the update took hours, so it was ended; try again."
        ) from error
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # what it has started, too
            await asyncio.shield(child.wait())
    text = said.decode(errors="replace").strip()
    _log.info("%s ended with %s: %s", command[0], child.returncode, text)
    last = f" It said: {text.splitlines()[-1]}" if text else ""
    if child.returncode:
        raise UpdateError(f"The update could not be installed, so this version stays.{last}")
    return last


def _prune(root: Path) -> None:
    """Remove versions that neither run, nor shall, nor are kept to go back to."""
    now = versions.read(root)
    # Another may have been adopted meanwhile, and what runs is still read from.
    kept = {now.current, now.staged, __version__}
    for folder in (root / "versions").iterdir():
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
