"""Settings and what belongs to them, as `/shoal/v1` shows and changes them.

| call | body → answer |
|---|---|
| `GET /shoal/v1/settings` | → `Settings` |
| `PATCH /shoal/v1/settings` | `SettingsChange` → `Settings`: all of it takes effect, or nothing |
| `GET /shoal/v1/models/kept` | → `KeptModels`: what is on disk |
| `DELETE /shoal/v1/models/kept?name=NAME` | → `KeptModels` |
| `POST /shoal/v1/identity/backup` | `BackupRequest` → `IdentityBackup` |
| `POST /shoal/v1/identity/restore` | `RestoreRequest` → `{}`; the node joins again as who it was |
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Effect(StrEnum):
    """What a change of a setting takes; the engine does the first two by itself."""

    AT_ONCE = "at_once"
    REJOIN = "rejoin"
    """The stage ends and the node joins its swarm again, which takes seconds."""
    RESTART = "restart"
    """It holds when the engine starts next."""


class Setting(_Answer):
    """One setting."""

    name: str
    """`branch.field`, as in `settings.toml`."""
    value: Any
    default: Any
    about: str
    effect: Effect
    is_overridden: bool = False
    """The engine was started with another value, which holds until it ends."""


class Settings(_Answer):
    """All settings that a person may want to change."""

    file: str
    settings: tuple[Setting, ...]
    needs_restart: tuple[str, ...] = ()
    """Those that have been changed, but hold only when the engine starts next."""

    def value(self, name: str) -> Any:
        """The value of one.

        Raises:
            KeyError: There is no such setting.
        """
        found = {setting.name: setting.value for setting in self.settings}
        return found[name]


class SettingsChange(_Request):
    """New values by name; None: the default. With none at all the settings file is read again."""

    values: dict[str, Any] = Field(max_length=200)


class KeptModelInfo(_Answer):
    """A model on this computer's disk."""

    name: str
    num_bytes: int
    in_use: bool


class KeptModels(_Answer):
    """All of them."""

    folder: str
    free_bytes: int
    models: tuple[KeptModelInfo, ...]


class BackupRequest(_Request):
    """Ask for the identity, encrypted."""

    passphrase: str = Field(min_length=8, max_length=1024)


class IdentityBackup(_Answer):
    """The node's identity under a passphrase."""

    peer_id: str
    backup: str
    """A PKCS #12 container (AES-256, PBKDF2), as text in base 64."""


class RestoreRequest(_Request):
    """Become who the backup was."""

    passphrase: str = Field(max_length=1024)
    backup: str = Field(min_length=1, max_length=65536)
