"""What KV caches hold."""

from __future__ import annotations

import torch

from engine.kv.cache import SequenceCache


def held(cache: SequenceCache, block: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of the first positions, each [K, end, d]."""
    parts = [
        part.held(block, 0, min(end - part.first, part.num_tokens))
        for part in cache.parts
        if part.first < end
    ]
    keys, values = torch.cat(parts, dim=1).chunk(2)
    return keys, values
