"""Pruning a draft at the first stage, before it crosses a link ([BB] §7.2).

A small head guesses from a token's hidden state after the first stage what the whole model will say
next. Whether a drafted token that follows may stay is then judged from three numbers: how sure the
guess is, what it gives the token, and its entropy. A token that goes takes along what follows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch.nn.functional import linear

from engine.core.errors import ModelCorrupt, ModelError
from engine.core.whole_file import write_whole
from engine.speculation.tree import TokenTree

DESCRIPTION: Final = "pruner.json"
WEIGHTS: Final = "pruner.safetensors"
FEATURES: Final = 3
_MAX_BYTES: Final = 1 << 28
_NAMES: Final = ("down", "up", "vocabulary", "mlp.0", "mlp.0.bias", "mlp.1", "mlp.1.bias")


class PrunerDescription(BaseModel):
    """What stands beside the weights."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int = Field(default=1, ge=1, le=1)
    target: str
    """Model id of the one target it judges for."""
    num_blocks: int = Field(ge=1)
    """Of the first stage: its hidden states are judged after so many."""
    sha256: str
    measured: tuple[dict[str, float], ...] = ()
    """By τ: the share of nodes and of accepted tokens that is left on held-out prompts."""


class Pruner:
    """Judges drafted tokens for one target and one length of the first stage.

    Args:
        tensors: `down` [r, D] and `up` [V', r] make the low-rank head over `vocabulary` [V'] int64;
            `mlp.0` [h, 3] and `mlp.1` [1, h] with their biases judge.
        vocab_size: V.
    """

    def __init__(self, tensors: Mapping[str, Tensor], vocab_size: int) -> None:
        self._tensors = tensors
        vocabulary = tensors["vocabulary"]
        self._place_of = torch.full((vocab_size,), -1)
        self._place_of[vocabulary] = torch.arange(len(vocabulary))

    def guesses(self, hidden: Tensor) -> Tensor:
        """[n, D] hidden states after the first stage to log p̂ over the vocabulary, [n, V']."""
        hidden = hidden.float()
        scale = hidden.square().mean(1, keepdim=True).rsqrt()
        low = linear(hidden * scale, self._tensors["down"])
        return linear(low, self._tensors["up"]).log_softmax(1)

    def features(self, log_p: Tensor, rows: Tensor, ids: Tensor) -> Tensor:
        """What is known of candidates, [n, 3].

        Args:
            log_p: Guesses, [m, V'].
            rows: Of each candidate the guess it is judged by, [n].
            ids: The candidates, [n].
        """
        peak = log_p.max(1).values.exp()
        entropy = -(log_p.exp() * log_p).sum(1)
        places = self._place_of[ids]
        own = torch.where(places >= 0, log_p[rows, places.clamp_min(0)].exp(), 0.0)
        return torch.stack((peak[rows], own, entropy[rows]), dim=1)

    def scores(self, features: Tensor) -> Tensor:
        """[n, 3] to scores in [0, 1], [n]."""
        t = self._tensors
        inner = linear(features, t["mlp.0"], t["mlp.0.bias"]).relu()
        return linear(inner, t["mlp.1"], t["mlp.1.bias"])[:, 0].sigmoid()

    @torch.inference_mode()
    def kept(self, tree: TokenTree, hidden: Tensor, prune_threshold: float) -> list[bool]:
        """Which nodes may stay, for `TokenTree.pruned`.

        Args:
            tree: N nodes.
            hidden: After the first stage, of the last committed token and of each node, [1 + N, D].
            prune_threshold: τ: what a node's score must reach.
        """
        if not len(tree):
            return []
        before = torch.tensor(tree.parents) + 1  # row 0 is the last committed token's
        rows, row_of = torch.unique(before, return_inverse=True)  # leaves need no guess
        log_p = self.guesses(hidden[rows.to(hidden.device)].cpu())
        scores = self.scores(self.features(log_p, row_of, torch.tensor(tree.ids)))
        kept: list[bool] = (scores >= prune_threshold).tolist()
        return kept


def write_pruner(
    directory: Path, tensors: Mapping[str, Tensor], description: Mapping[str, Any]
) -> PrunerDescription:
    """Write both files; `description` lacks nothing but the hash."""
    content = save({name: tensors[name].contiguous() for name in _NAMES})
    sha256 = hashlib.sha256(content).hexdigest()
    whole = PrunerDescription.model_validate({**description, "sha256": sha256})
    write_whole(directory / WEIGHTS, content)
    write_whole(directory / DESCRIPTION, whole.model_dump_json(indent=2).encode() + b"\n")
    return whole


def load_pruner(
    directory: Path, *, target: str, num_blocks: int, hidden_size: int, vocab_size: int
) -> Pruner:
    """Read a pruner for a first stage.

    Args:
        directory: Of the pruner.
        target: Model id.
        num_blocks: Of the first stage.
        hidden_size: D of the target.
        vocab_size: V of the target.

    Raises:
        ModelError: It was made for another target or another first stage.
        ModelCorrupt: Its files are missing or damaged.
    """
    try:
        description = PrunerDescription.model_validate_json((directory / DESCRIPTION).read_bytes())
        path = directory / WEIGHTS
        if path.stat().st_size > _MAX_BYTES:
            raise _damaged(directory, "its weights are larger than any pruner's")
        content = path.read_bytes()
    except (OSError, ValidationError) as error:
        raise _damaged(directory, "a file is missing or makes no sense") from error
    if (description.target, description.num_blocks) != (target, num_blocks):
        raise ModelError(
            f"The pruner in {directory} was made for the first {description.num_blocks} blocks of "
            f"{description.target}, not for {num_blocks} of {target}; train one for these."
        )
    if hashlib.sha256(content).hexdigest() != description.sha256:
        raise _damaged(directory, "its weights are not those that were written")
    try:
        tensors = load(content)
    except SafetensorError as error:
        raise _damaged(directory, str(error)) from error
    if set(tensors) != set(_NAMES):
        raise _damaged(directory, "it lacks weights")
    tensors["vocabulary"] = tensors["vocabulary"].long()
    _check_shapes(tensors, directory, hidden_size, vocab_size)
    return Pruner(
        {n: t if n == "vocabulary" else t.float() for n, t in tensors.items()}, vocab_size
    )


def _check_shapes(
    tensors: Mapping[str, Tensor], directory: Path, hidden_size: int, vocab_size: int
) -> None:
    rank, size, inner = (len(tensors[name]) for name in ("down", "vocabulary", "mlp.0"))
    shapes = {
        "down": (rank, hidden_size),
        "up": (size, rank),
        "vocabulary": (size,),
        "mlp.0": (inner, FEATURES),
        "mlp.0.bias": (inner,),
        "mlp.1": (1, inner),
        "mlp.1.bias": (1,),
    }
    ids = tensors["vocabulary"]
    if any(tuple(tensors[name].shape) != shape for name, shape in shapes.items()):
        raise _damaged(directory, "its weights have other shapes than its target needs")
    if not size or ids.min() < 0 or ids.max() >= vocab_size:
        raise _damaged(directory, "its vocabulary holds ids that the target does not have")


def _damaged(directory: Path, why: str) -> ModelCorrupt:
    return ModelCorrupt(
        f"The pruner in {directory} cannot be used: {why}; remove the folder, or train it again."
    )
