"""What a draft is made from, kept beside it so that a run can go on and be repeated."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.core.errors import ConfigError
from engine.core.whole_file import write_whole

RECIPE: Final = "recipe.json"


class Recipe(BaseModel):
    """Everything that the result depends on, but how far the run has come."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    """The target's model id."""
    prompts_sha256: str
    num_blocks: int = 3
    """The target's first blocks, which are copied."""
    vocabulary_size: int = 8192
    """Ids that the draft can propose: the commonest; 0: all."""
    max_answer_tokens: int = 96
    temperature: float = 0.7
    """Of every second answer; the others are greedy."""
    batch_tokens: int = 1024
    learning_rate: float = 1e-3
    seed: int = 0

    @classmethod
    def kept_in(cls, directory: Path) -> Recipe:
        """The one that a folder was begun with.

        Raises:
            ConfigError: There is none of this version.
        """
        path = directory / RECIPE
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise ConfigError(
                f"The file {path} is no recipe of this version; choose another folder."
            ) from error

    def keep(self, directory: Path) -> None:
        """Write it down, or see that what is there was begun by the same one.

        Raises:
            ConfigError: Another recipe was begun there.
        """
        path = directory / RECIPE
        if path.exists():
            begun = Recipe.kept_in(directory)
            if begun != self:
                names = [n for n in Recipe.model_fields if getattr(begun, n) != getattr(self, n)]
                raise ConfigError(
                    f"In {directory} a draft was begun with another {', '.join(names)}; use the same "
                    "arguments to go on, or choose another folder."
                )
            return
        write_whole(path, self.model_dump_json(indent=2).encode())


def read_prompts(path: Path) -> tuple[str, ...]:
    """A prompt on each line; empty lines are left out.

    Raises:
        ConfigError: The file cannot be read, or holds nothing.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The prompts in {path} cannot be read ({error}).") from error
    prompts = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not prompts:
        raise ConfigError(f"The file {path} holds no prompts; write one on each line.")
    return prompts


def prompts_sha256(prompts: tuple[str, ...]) -> str:
    """Names the data in a recipe."""
    return hashlib.sha256("\n".join(prompts).encode()).hexdigest()
