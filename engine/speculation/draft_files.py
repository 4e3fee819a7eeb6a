"""What stands beside a distilled draft's weights, and where drafts are found. Loads no torch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.errors import ModelCorrupt

logger = logging.getLogger(__name__)

DESCRIPTION: Final = "draft.json"
WEIGHTS: Final = "draft.safetensors"
SHIPPED: Final = Path(__file__).parents[2] / "resources" / "drafts"


class Description(BaseModel):
    """What a draft says of itself."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int = Field(default=1, ge=1, le=1)
    target: str
    """Model id of the one target it can draft for."""
    num_blocks: int = Field(ge=1, le=64)
    sha256: str
    """Of the weights' file."""
    recipe: dict[str, Any] = {}
    data_origin: str = ""
    trained_steps: int = 0
    held_out: dict[str, float] = {}
    """Committed tokens per round on prompts that were not trained on."""


def read_description(directory: Path) -> Description:
    """What a draft says of itself.

    Raises:
        ModelCorrupt: There is none, or it makes no sense.
    """
    try:
        return Description.model_validate_json((directory / DESCRIPTION).read_bytes())
    except (OSError, ValidationError) as error:
        raise ModelCorrupt(
            f"The draft in {directory} cannot be used: {DESCRIPTION} is missing or makes no sense; "
            "remove the folder, or train the draft again."
        ) from error


def find_draft(target: str, folders: Sequence[Path] = (SHIPPED,)) -> Path | None:
    """A draft that was made for a target.

    Args:
        target: Its model id.
        folders: Each may hold folders of drafts; the first fitting one is taken.

    Returns:
        None: There is none. Folders that cannot be read are passed over, and logged.
    """
    for folder in folders:
        for description in sorted(folder.glob(f"*/{DESCRIPTION}")):
            try:
                if read_description(description.parent).target == target:
                    return description.parent
            except ModelCorrupt as error:
                logger.warning("%s", error)
    return None
