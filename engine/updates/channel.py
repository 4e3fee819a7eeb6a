"""Where this build looks for new versions, and whose signature it believes.

`installers/sign.py keys` writes `channel.json`. A checkout has none: who builds and publishes Shoal
makes keys of their own, and until then there is nowhere to look.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.config import UpdatesConfig

CHANNEL_FILE: Final = Path(__file__).with_name("channel.json")


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Channel:
    """A list of versions."""

    url: str
    keys: tuple[str, ...]
    """Public keys, any of which may have signed it: two while one replaces the other."""


def channel(settings: UpdatesConfig) -> Channel | None:
    """The one that the settings name, else this build's; None: there is none."""
    try:
        built_in = _File.model_validate_json(CHANNEL_FILE.read_bytes())
    except (OSError, ValidationError):
        built_in = _File()
    url = settings.url or built_in.url
    keys = (settings.key,) if settings.key else built_in.keys
    return Channel(url, keys) if url and keys else None
