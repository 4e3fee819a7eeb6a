"""The KV cache of one sequence: one preallocated tensor, written in place."""

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

    __slots__ = ("_blocks", "capacity_tokens", "length", "num_bytes")

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
            num_blocks, 2 * num_kv_heads, capacity_tokens, head_dim, dtype=dtype, device=device
        )
        self._blocks = storage.unbind()  # each [2K, capacity, d]: the heads' keys, then values
        self.capacity_tokens = capacity_tokens
        self.num_bytes: int = storage.nbytes
        self.length = 0
        """Tokens held, the same in every block between forward passes."""

    def put(self, block: int, position: int, new: Tensor) -> tuple[Tensor, Tensor]:
        """Store T tokens of one block from `position` on; `length` is the caller's to move.

        Args:
            block: Index within the span.
            position: S, place of the first token.
            new: Keys of all heads, then values, [T, 2K, d].

        Returns:
            Keys and values up to the last new token, each [1, K, S + T, d], not copied.
        """
        T = new.shape[0]
        held = self._blocks[block].narrow(1, 0, position + T)  # [2K, S + T, d]
        held.narrow(1, position, T).copy_(new.transpose(0, 1))
        keys, values = held.unsqueeze(0).chunk(2, dim=1)
        return keys, values
