"""Models that Shoal offers by name, as `GET /shoal/v1/models` tells them.

`GET /shoal/v1/models` → `Catalogue`. The model itself is a setting, `model.source`.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Standing(StrEnum):
    """What a model needs to run here."""

    RUNNING = "running"
    POSSIBLE = "possible"
    """The computers that are known have room for it."""
    TOO_LARGE = "too_large"


class CatalogueModel(BaseModel):
    """One model."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    source: str
    """What `model.source` becomes."""
    name: str
    about: str
    licence: str
    blocks: int
    context_tokens: int
    draft: str | None = None
    """A smaller sibling with the same tokenizer."""
    minimum_swarm: int
    standing: Standing
    needed_bytes: int
    """All blocks and both ends, in the precision that is used here."""
    missing_bytes: int = 0
    """How much more room the computers that are known would have to have."""


class Catalogue(BaseModel):
    """All of them, the smallest first."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    models: tuple[CatalogueModel, ...]
    can_choose: bool
    """False in a swarm, which runs the model that it was founded with."""
    computers: int
    """How many are known, this one included."""
