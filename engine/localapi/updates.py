"""Values of `/shoal/v1/updates`: new versions of Shoal itself.

| call | body → answer |
|---|---|
| `POST /shoal/v1/updates/check` | → `UpdateInfo`; asks now |
| `POST /shoal/v1/updates/install` | → `UpdateInfo`; fetches and puts it beside this version, in the background |
| `POST /shoal/v1/updates/restart` | → `UpdateInfo`; lets running requests end or go elsewhere, then ends to be started anew |

`EngineStatus.update` says how far it is.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from engine.localapi.installation import Package


class UpdateStep(StrEnum):
    """How far it is."""

    NOWHERE = "nowhere"
    """This build names no place to look at, and neither do the settings."""
    UNKNOWN = "unknown"
    """Nobody has looked yet."""
    LATEST = "latest"
    """This version is the newest."""
    AVAILABLE = "available"
    FETCHING = "fetching"
    INSTALLING = "installing"
    """It is put beside this version."""
    READY = "ready"
    """The next start tries it; where `command` is not empty, a person has to run that first."""
    RESTARTING = "restarting"
    """Requests come to their end; then the engine does, to be started anew."""


class UpdateInfo(BaseModel):
    """What is known of new versions."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: UpdateStep
    package: Package
    """How this one was installed."""
    version: str = ""
    """The new one; empty while none is known."""
    summary: str = ""
    """What it brings, as those say who publish it."""
    page: str = ""
    """Where to read more."""
    is_needed: bool = False
    """It no longer speaks with nodes of this version."""
    checked_unix_s: float | None = None
    """When the list was fetched last."""
    done_bytes: int = 0
    """Of `total_bytes`, while it is fetched."""
    total_bytes: int = 0
    problem: str = ""
    """Why the last step failed, a sentence."""
    command: str = ""
    """What a person has to run to install it, because only the system's package manager may."""
    sha256: str = ""
    """Of the setup that `command` names, as the signed list has it; in hexadecimal."""
    failed: str = ""
    """A version that was tried and did not start, so that this one runs again."""
