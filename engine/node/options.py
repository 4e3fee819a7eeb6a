"""How one engine is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.config import Config, Overrides
from engine.localapi.installation import Installation
from engine.localapi.running import Home


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What `shoal engine` was told, beyond the settings."""

    home: Home
    config: Config
    overrides: Overrides = field(default_factory=dict)
    """What of the configuration is the command line's, and not the settings file's."""
    awaits_setup: bool = False
    """Begin nothing before a person has said how, if nothing has ever begun here."""
    leased: bool = False
    """End when the last event stream opened with `lease=1` closes."""
    ready_fd: int | None = None
    """Write a `ReadyFile` line here once the API answers, then close it."""
    ready_file: Path | None = None
    stages: int = 1
    """Cut the model into this many stages; the others are further engines on this machine."""
    invite: str | None = None
    """Join this swarm for this run, whatever the swarm file says."""
    parent_pid: int | None = None
    """Die with this process."""
    installation: Installation = field(default_factory=Installation)
    """How this version came here, and whether another may take its place."""
    debug: bool = False
    """Log more."""
