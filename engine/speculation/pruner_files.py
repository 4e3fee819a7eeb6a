"""The files of pruners: written and found, and checked before anything of them is used."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from engine.core.errors import ModelCorrupt
from engine.core.model_spec import ModelSpec
from engine.core.whole_file import write_whole
from engine.speculation.pruner import FEATURES, Pruner

logger = logging.getLogger(__name__)

DESCRIPTION: Final = "pruner.json"
WEIGHTS: Final = "pruner.safetensors"
SHIPPED: Final = Path(__file__).parents[2] / "resources" / "pruners"
_MAX_BYTES: Final = 64 << 20
_MAX_DESCRIPTION_BYTES: Final = 1 << 20
_MAX_INNER: Final = 4096
_MLP: Final = ("mlp.0", "mlp.0.bias", "mlp.1", "mlp.1.bias")
NAMES: Final = ("down", "inner", "outer", "up", "vocabulary", *_MLP)


class Measured(BaseModel):
    """What is left of trees at one τ, on prompts that were held out."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    prune_threshold: float = Field(gt=0, le=1)
    surviving: float = Field(ge=0, le=1)
    """Share of the nodes."""
    remaining: float = Field(ge=0, le=1)
    """Share of the accepted tokens."""


class PrunerDescription(BaseModel):
    """What stands beside the weights."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int = Field(default=2, ge=2, le=2)
    target: str
    """Model id of the one target it judges for."""
    num_blocks: int = Field(ge=1, le=4096)
    """It judges hidden states after so many; a first stage must hold at least these."""
    sha256: str
    measured: tuple[Measured, ...] = Field(default=(), max_length=64)
    recipe: dict[str, Any] = {}
    data_origin: str = ""


@dataclass(frozen=True, slots=True)
class PrunersFound:
    """What there is for a first stage."""

    pruners: Mapping[int, Pruner]
    """By the blocks after which they judge."""
    refused: tuple[str, ...]
    """Why others cannot be used, a sentence each."""


def write_pruner(
    directory: Path, tensors: Mapping[str, Tensor], description: Mapping[str, Any]
) -> PrunerDescription:
    """Write both files; `description` lacks nothing but the hash."""
    content = save({name: tensors[name].contiguous() for name in NAMES})
    sha256 = hashlib.sha256(content).hexdigest()
    whole = PrunerDescription.model_validate({**description, "sha256": sha256})
    write_whole(directory / WEIGHTS, content)
    write_whole(directory / DESCRIPTION, whole.model_dump_json(indent=2).encode() + b"\n")
    return whole


def find_pruners(spec: ModelSpec, most_blocks: int, folders: Sequence[Path]) -> PrunersFound:
    """Load the pruners of a target that a first stage can use.

    Args:
        spec: The target's.
        most_blocks: That the stage holds.
        folders: Each may hold folders of pruners; of those for equally many blocks the first counts.
    """
    pruners: dict[int, Pruner] = {}
    refused = []
    for folder in folders:
        for path in sorted(folder.glob(f"*/{DESCRIPTION}")):
            try:
                description = _read_description(path.parent)
                depth = description.num_blocks
                if description.target != spec.model_id or depth > most_blocks or depth in pruners:
                    continue
                pruners[depth] = load_pruner(path.parent, spec.hidden_size, spec.vocab_size)
            except ModelCorrupt as error:
                refused.append(f"{error} Until then drafts are sent on whole.")
    return PrunersFound(pruners, tuple(refused))


def load_pruner(directory: Path, hidden_size: int, vocab_size: int) -> Pruner:
    """Read a pruner.

    Args:
        directory: Of the pruner.
        hidden_size: D of the target.
        vocab_size: V of the target.

    Raises:
        ModelCorrupt: Its files are missing or damaged, or made for a model of other sizes.
    """
    description = _read_description(directory)
    path = directory / WEIGHTS
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _damaged(directory, "its weights are larger than any pruner's")
        content = path.read_bytes()
    except OSError as error:
        raise _damaged(directory, "its weights are missing") from error
    if hashlib.sha256(content).hexdigest() != description.sha256:
        raise _damaged(directory, "its weights are not those that were written")
    _check_shapes(_shapes_of(content, directory), directory, hidden_size, vocab_size)
    try:
        tensors = load(content)
    except SafetensorError as error:
        raise _damaged(directory, str(error)) from error
    ids = tensors["vocabulary"].long()
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise _damaged(directory, "its vocabulary holds ids that the target does not have")
    weights = {name: tensors[name].float() for name in NAMES if name != "vocabulary"}
    if not all(bool(torch.isfinite(weight).all()) for weight in weights.values()):
        raise _damaged(directory, "its weights hold what is no number")
    measured = [row.model_dump() for row in description.measured]
    return Pruner({**weights, "vocabulary": ids}, vocab_size, measured)


def _read_description(directory: Path) -> PrunerDescription:
    path = directory / DESCRIPTION
    try:
        if path.stat().st_size > _MAX_DESCRIPTION_BYTES:
            raise _damaged(directory, f"{DESCRIPTION} is larger than any pruner's")
        return PrunerDescription.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise _damaged(directory, f"{DESCRIPTION} is missing or makes no sense") from error


def _shapes_of(content: bytes, directory: Path) -> dict[str, tuple[int, ...]]:
    """From the file's own table, before any tensor is made."""
    try:
        length = int.from_bytes(content[:8], "little")
        table = json.loads(content[8 : 8 + length])
        return {
            name: tuple(map(int, entry["shape"]))
            for name, entry in table.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(directory, "its weights make no sense") from error


def _check_shapes(
    shapes: Mapping[str, tuple[int, ...]], directory: Path, hidden_size: int, vocab_size: int
) -> None:
    if set(shapes) != set(NAMES) or not all(shapes.values()):
        raise _damaged(directory, "it lacks weights")
    rank, size, wide, inner = (shapes[name][0] for name in ("down", "vocabulary", "inner", "mlp.0"))
    expected = {
        "down": (rank, hidden_size),
        "inner": (wide, hidden_size),
        "outer": (rank, wide),
        "up": (size, rank),
        "vocabulary": (size,),
        "mlp.0": (inner, FEATURES),
        "mlp.0.bias": (inner,),
        "mlp.1": (1, inner),
        "mlp.1.bias": (1,),
    }
    sizes = (rank, wide, inner)
    if (
        shapes != expected
        or not 0 < size <= vocab_size
        or not all(0 < n <= _MAX_INNER for n in sizes)
    ):
        raise _damaged(directory, "its weights have other shapes than its target needs")


def _damaged(directory: Path, why: str) -> ModelCorrupt:
    return ModelCorrupt(
        f"The pruner in {directory} cannot be used: {why}; remove the folder, or train it again."
    )
