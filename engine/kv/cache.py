"""The KV cache of one sequence: two preallocated tensors, written in place."""

from __future__ import annotations

import torch
from torch import Tensor


class SequenceCache:
    """Keys and values of one sequence in the blocks of one span.

    Room for all `capacity_tokens` is taken at once, so that a step never fails for memory and no
    token costs a copy of those before it. Only the first `length` tokens mean anything.

    Args:
        num_blocks: L, blocks of the session's span here.
        num_kv_heads: K.
        head_dim: d.
        capacity_tokens: The most tokens that will ever be held.
        dtype: Of keys and values.
        device: Where the blocks compute.
    """

    __slots__ = ("capacity_tokens", "keys", "length", "num_bytes", "values")

    def __init__(
        self,
        num_blocks: int,
        num_kv_heads: int,
        head_dim: int,
        capacity_tokens: int,
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        storage = torch.empty(
            2, num_blocks, num_kv_heads, capacity_tokens, head_dim, dtype=dtype, device=device
        )
        self.keys: tuple[Tensor, ...] = storage[0].unbind()
        """Per block, [K, capacity, d]."""
        self.values: tuple[Tensor, ...] = storage[1].unbind()
        """Per block, [K, capacity, d]."""
        self.capacity_tokens = capacity_tokens
        self.num_bytes: int = storage.nbytes
        self.length = 0
        """Tokens held, the same in every block between forward passes."""

    def write(self, block: int, position: int, key: Tensor, value: Tensor) -> None:
        """Store T tokens of one block from `position` on; `length` is the caller's to move.

        Args:
            block: Index within the span.
            position: Place of the first token.
            key: [K, T, d].
            value: [K, T, d].
        """
        end = position + key.shape[1]
        self.keys[block][:, position:end] = key
        self.values[block][:, position:end] = value
