"""The models of `resources/models.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.errors import ModelError

CATALOGUE: Final = Path(__file__).parents[2] / "resources" / "models.toml"


class Entry(BaseModel):
    """One model; bytes are those at 16 bits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(min_length=1)
    name: str = Field(min_length=1)
    about: str
    licence: str
    family: str
    blocks: int = Field(ge=1)
    block_bytes: int = Field(ge=1)
    ends_bytes: int = Field(ge=1)
    context_tokens: int = Field(ge=1)
    draft: str | None = None
    minimum_swarm: int = Field(ge=1)

    def bytes_at(self, element_bytes: int) -> tuple[int, int]:
        """A block and both ends, with weights of so many bytes."""
        return self.block_bytes * element_bytes // 2, self.ends_bytes * element_bytes // 2


@cache
def catalogue(path: Path = CATALOGUE) -> Mapping[str, Entry]:
    """All models by their source, in the order of the file.

    Raises:
        ModelError: The file is not there or makes no sense.
    """
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = [Entry.model_validate(fields) for fields in tree["models"]]
    except (OSError, KeyError, TypeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise ModelError(
            f"The list of models in {path} cannot be read ({type(error).__name__}); set Shoal up "
            "again to get it back."
        ) from error
    return {entry.source: entry for entry in entries}
