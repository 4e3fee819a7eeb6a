"""The local API's token: a file that only the user can read."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from engine.core.errors import ConfigError
from engine.localapi.running import read_token

_TOKEN_BYTES = 32
_LEAST_CHARS = 32
"""Shorter contents are a file cut short, not a token."""


def ensure_token(path: Path) -> str:
    """The token in `path`; made first if there is none, so that it stays the same over restarts.

    Raises:
        ConfigError: The file can neither be read nor made.
    """
    try:
        with suppress(FileNotFoundError):
            token = read_token(path)
            if len(token) >= _LEAST_CHARS and token.isascii():
                path.chmod(0o600)
                return token
        return _create(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The API token in {path} cannot be read or made ({error}); check the folder's "
            "permissions or remove the file."
        ) from error


def _create(path: Path) -> str:
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        fresh.unlink()  # left behind by a process that was killed here and had our number
    # The mode is given at creation: no moment in which others could open the file.
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return token
