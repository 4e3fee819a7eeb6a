"""A draft model's keys and values of one sequence: what is committed, and a tree beyond it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


class DraftCells:
    """Room for the keys and values of one sequence in all blocks of a small model.

    Args:
        num_blocks: L.
        num_kv_heads: K.
        head_dim: d.
        capacity_tokens: Tokens that fit, those of a tree included.
        dtype: Of the arithmetic.
        device: Where the blocks compute.
    """

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
        shape = (num_blocks, 2 * num_kv_heads, capacity_tokens, head_dim)
        self.blocks = torch.zeros(shape, dtype=dtype, device=device)
        self.capacity_tokens = capacity_tokens


class DraftPart:
    """T tokens of one sequence in a forward pass.

    Args:
        cells: The sequence's.
        start: Slot of the first of them; those before it hold what they may see.
        num_tokens: T.
        visible: Which slots each sees, [T, start + T] bool; None: all before it and itself.
    """

    def __init__(
        self, cells: DraftCells, start: int, num_tokens: int, visible: Tensor | None
    ) -> None:
        T = num_tokens
        self.num_tokens = T
        self._cells = cells.blocks
        self._slots = slice(start, start + T)
        self._is_causal = visible is None and start == 0 and T > 1
        if visible is None and start > 0 and T > 1:
            visible = torch.ones(T, start + T, dtype=torch.bool, device=cells.blocks.device).tril(
                start
            )
        self._visible = visible

    def attend(self, query: Tensor, new: Tensor, index: int, *, scaling: float) -> Tensor:
        """See `engine.models.block.Attention`; query is [T, H, d], new [T, 2 K, d]."""
        T, H, d = query.shape
        cells = self._cells[index]
        cells[:, self._slots] = new.transpose(0, 1)
        keys, values = cells[None, :, : self._slots.stop].chunk(2, dim=1)  # each [1, K, S, d]
        if T == 1:
            grouped = query.view(1, keys.shape[1], -1, d)
            mask = None if self._visible is None else self._visible[None, None]
            out = scaled_dot_product_attention(grouped, keys, values, mask, scale=scaling)
            return out.reshape(1, H * d)
        out = scaled_dot_product_attention(
            query.transpose(0, 1)[None],  # [1, H, T, d]
            keys,
            values,
            None if self._visible is None else self._visible[None, None],
            is_causal=self._is_causal,
            scale=scaling,
            enable_gqa=True,
        )
        return out[0].transpose(0, 1).reshape(T, H * d)


class DraftRows:
    """Tokens of some sequences, one after another; see `engine.models.block.Attention`.

    Args:
        parts: One for each sequence.
        cos: Of all tokens' positions, [T, 1, d].
        sin: [T, 1, d].
    """

    def __init__(self, parts: Sequence[DraftPart], cos: Tensor, sin: Tensor) -> None:
        half = sin.shape[-1] // 2
        self._parts = parts
        self._counts = [part.num_tokens for part in parts]
        self._cos = cos
        # With its first half negated, x cos + swap(x) sin rotates, where swap exchanges halves.
        self._sin = torch.cat((-sin[..., :half], sin[..., half:]), dim=-1)

    def rotate_(self, heads: Tensor) -> None:
        """See `Attention`."""
        first, second = heads.chunk(2, dim=-1)
        swapped = torch.cat((second, first), dim=-1)
        heads.mul_(self._cos).addcmul_(swapped, self._sin)

    def attend(
        self, query: Tensor, new: Tensor, index: int, *, window: int | None, scaling: float
    ) -> Tensor:
        """See `Attention`; a model's context is never longer than its window here."""
        if len(self._parts) == 1:
            return self._parts[0].attend(query, new, index, scaling=scaling)
        queries, news = torch.split(query, self._counts), torch.split(new, self._counts)
        split = zip(self._parts, queries, news, strict=True)
        return torch.cat([part.attend(q, n, index, scaling=scaling) for part, q, n in split])
