"""Pruners for tests, made from nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.speculation.pruner import FEATURES


def pruner_tensors(
    hidden_size: int, vocab_size: int, *, floor: float, seed: int = 0
) -> dict[str, Tensor]:
    """A head that guesses at random over the first ids, and a judge that believes it.

    A token is sure to be in if its guess is a nat above `floor`, and sure to be out below it; no score
    reaches 1.
    """
    generator = torch.Generator().manual_seed(seed)
    rank, wide = 2, 3
    judge = torch.zeros(2, FEATURES)
    judge[:, 1] = 10.0  # what the guess gives the token
    return {
        "down": torch.randn(rank, hidden_size, generator=generator),
        "inner": torch.randn(wide, hidden_size, generator=generator),
        "outer": torch.randn(rank, wide, generator=generator),
        "up": 0.1 * torch.randn(vocab_size, rank, generator=generator),
        "vocabulary": torch.arange(vocab_size),
        "mlp.0": judge,
        "mlp.0.bias": torch.tensor([0.0, -10.0]) - 10.0 * floor,
        "mlp.1": torch.tensor([[1.0, -1.0]]),
        "mlp.1.bias": torch.tensor([-5.0]),
    }
