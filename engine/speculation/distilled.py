"""The file of a distilled draft: a few blocks in float16, for exactly one target.

Embedding and head are the target's own, so the file needs none; who drafts has the target's files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from engine.core.errors import ModelCorrupt, ModelError
from engine.core.whole_file import write_whole
from engine.models.block import fill
from engine.models.block_stack import make_block
from engine.models.families import family_of, read_config
from engine.models.layout import EMBEDDING, LM_HEAD, ModelFiles
from engine.models.linear import Linear, fast_linear
from engine.models.weights import load_tensors
from engine.speculation.draft_files import DESCRIPTION, WEIGHTS, Description, read_description
from engine.speculation.draft_model import DraftModel

NORM: Final = "model.norm.weight"
OUTPUT: Final = "draft.output.weight"
VOCABULARY: Final = "draft.vocabulary"
_MAX_BYTES: Final = 1 << 30


def write_draft(
    directory: Path, tensors: Mapping[str, Tensor], description: Mapping[str, Any]
) -> Description:
    """Write both files; `description` lacks nothing but the hash."""
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    whole = Description.model_validate(
        {**description, "sha256": hashlib.sha256(content).hexdigest()}
    )
    write_whole(directory / WEIGHTS, content)
    write_whole(directory / DESCRIPTION, whole.model_dump_json(indent=2).encode() + b"\n")
    return whole


def load_distilled(
    directory: Path, target: ModelFiles, *, dtype: torch.dtype, device: torch.device
) -> DraftModel:
    """Make a draft ready for its target.

    Args:
        directory: Of the draft.
        target: With its embedding and head on disk.
        dtype: Of weights and arithmetic.
        device: Where to compute.

    Raises:
        ModelError: It was made for another target.
        ModelCorrupt: Its files are damaged.
    """
    description = read_description(directory)
    if description.target != target.spec.model_id:
        raise ModelError(
            f"The draft in {directory} was made for {description.target}, not for "
            f"{target.spec.model_id}; choose another draft, or train one for this model."
        )
    tensors = _read_weights(directory / WEIGHTS, description.sha256)
    vocabulary = _vocabulary(tensors, target.spec.vocab_size, directory)
    shape = (target.spec.hidden_size, target.spec.hidden_size)
    if OUTPUT not in tensors or tensors[OUTPUT].shape != shape or NORM not in tensors:
        raise _damaged(directory, "weights are missing or of another shape")
    config = read_config(target.directory, target.spec)
    ours = {name: tensor.to(device=device, dtype=dtype) for name, tensor in tensors.items()}
    blocks = tuple(make_block(config, b, ours) for b in range(description.num_blocks))
    with torch.device("meta"):
        norm: nn.Module = family_of(config.model_type).part("RMSNorm")(
            config.hidden_size, eps=config.rms_norm_eps
        )
    fill(norm, {"weight": ours[NORM]}, "model.norm.")
    ends = load_tensors(target.directory, (EMBEDDING, LM_HEAD), device, dtype)
    output, head = fast_linear(ours[OUTPUT]), fast_linear(ends[LM_HEAD][vocabulary])
    rotary = family_of(config.model_type).part("RotaryEmbedding")(config).to(device)
    return DraftModel(
        target.spec,
        blocks,
        rotary,
        ends[EMBEDDING],
        _ReadOut(norm, output, head),
        target.spec.vocab_size,
        vocabulary.to(device),
    )


class _ReadOut:
    """Norm, projection and the part of the target's head that the draft uses."""

    def __init__(self, norm: nn.Module, output: Linear, head: Linear) -> None:
        self._norm, self._output, self._head = norm, output, head

    def __call__(self, hidden: Tensor) -> Tensor:
        """[R, D] hidden states to [R, V'] logits."""
        return self._head(self._output(self._norm(hidden)))


def _read_weights(path: Path, sha256: str) -> dict[str, Tensor]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _damaged(path.parent, "its weights are larger than any draft's")
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise _damaged(path.parent, "its weights are not those that were written")
        return load(content)
    except (OSError, SafetensorError) as error:
        raise _damaged(path.parent, str(error)) from error


def _vocabulary(tensors: dict[str, Tensor], vocab_size: int, directory: Path) -> Tensor:
    """Takes it from the other tensors, which are weights."""
    ids = tensors.pop(VOCABULARY, None)
    if ids is None or ids.dtype != torch.int32 or ids.dim() != 1 or not 0 < len(ids) <= vocab_size:
        raise _damaged(directory, "its vocabulary is missing or makes no sense")
    ids = ids.long()
    if ids[0] < 0 or ids[-1] >= vocab_size or bool((ids[1:] <= ids[:-1]).any()):
        raise _damaged(directory, "its vocabulary holds ids that the target does not have")
    return ids


def _damaged(directory: Path, why: str) -> ModelCorrupt:
    return ModelCorrupt(
        f"The draft in {directory} cannot be used: {why}; remove the folder, or train it again."
    )
