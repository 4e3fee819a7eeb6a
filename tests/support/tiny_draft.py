"""A distilled draft for a tiny model: its own blocks, read out not quite as it does."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.core.model_spec import ModelSpec
from engine.models.layout import block_index
from engine.models.weights import load_tensors
from engine.speculation.distilled import NORM, OUTPUT, VOCABULARY, write_draft


def write_tiny_draft(
    directory: Path, target: Path, spec: ModelSpec, *, wrong: float = 0.1, seed: int = 0
) -> str:
    """Write one, and say its hash.

    Args:
        directory: Where; it is made.
        target: The model's folder.
        spec: The model.
        wrong: How far the projection is from the identity.
        seed: Of that.
    """
    tensors = load_tensors(target, lambda name: block_index(name) is not None or name == NORM)
    noise = torch.randn(
        spec.hidden_size, spec.hidden_size, generator=torch.Generator().manual_seed(seed)
    )
    tensors[OUTPUT] = torch.eye(spec.hidden_size) + wrong * noise
    tensors[VOCABULARY] = torch.arange(spec.vocab_size, dtype=torch.int32)
    directory.mkdir(parents=True)
    about = {"target": spec.model_id, "num_blocks": spec.num_hidden_layers}
    return write_draft(directory, tensors, about).sha256
