"""Which draft a last stage may hold a replica of, for DISCO ([DC]). Loads no torch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.core.errors import ModelCorrupt
from engine.core.model_spec import ModelSpec
from engine.speculation.draft_files import SHIPPED, WEIGHTS, find_draft, read_description

logger = logging.getLogger(__name__)

_FLOAT32_BYTES = 4


@dataclass(frozen=True, slots=True)
class ReplicaOrder:
    """A draft to hold when somebody asks for it; or why none can be."""

    budget_bytes: int
    """Memory for its weights and for what it knows of all sequences."""
    directory: Path | None = None
    sha256: str = ""
    """Names it."""
    why_not: str = ""

    @classmethod
    def find(
        cls, spec: ModelSpec, budget_bytes: int, folders: Sequence[Path] = (SHIPPED,)
    ) -> ReplicaOrder:
        """The draft that this machine has for a model.

        Args:
            spec: The model.
            budget_bytes: The most memory to take.
            folders: Where drafts are.
        """
        try:
            directory = find_draft(spec.model_id, folders)
            if directory is None:
                return cls(budget_bytes, why_not="The last stage has no draft for this model.")
            sha256 = read_description(directory).sha256
            weights_bytes = weights_bytes_of(directory, spec)
        except (ModelCorrupt, OSError) as error:
            logger.warning("no replica of a draft: %s", error)
            return cls(budget_bytes, why_not="The last stage's draft for this model is damaged.")
        if weights_bytes > budget_bytes:
            needed, given = -(-weights_bytes >> 20), budget_bytes >> 20
            text = f"The last stage would need {needed} MiB for a replica of the draft, and gives {given}."
            return cls(budget_bytes, why_not=text)
        return cls(budget_bytes, directory, sha256)

    def described(self) -> dict[str, Any]:
        """For a message to the worker."""
        directory = None if self.directory is None else str(self.directory)
        return {**asdict(self), "directory": directory}

    @classmethod
    def of(cls, described: dict[str, Any]) -> ReplicaOrder:
        """What `described` says."""
        directory = described["directory"]
        return cls(**{**described, "directory": None if directory is None else Path(directory)})

    def refusal(self, sha256: str) -> str:
        """Why a draft cannot be held, as a sentence; empty: it can."""
        if self.why_not or sha256 == self.sha256:
            return self.why_not
        return "The last stage has another draft for this model."


def weights_bytes_of(directory: Path, spec: ModelSpec) -> int:
    """What a distilled draft takes in float32, with embedding and head: at most."""
    stored_bytes = (directory / WEIGHTS).stat().st_size  # in float16
    table_bytes = spec.vocab_size * spec.hidden_size * _FLOAT32_BYTES
    return 2 * stored_bytes + 2 * table_bytes
