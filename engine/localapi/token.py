"""The local API's token: a file that only the user can read."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from engine.core.errors import ConfigError
from engine.core.whole_file import write_whole
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
    write_whole(path, f"{token}\n".encode("ascii"), 0o600)
    return token
