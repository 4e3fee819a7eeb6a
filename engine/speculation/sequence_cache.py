"""A draft model's keys and values of one sequence: what is committed, and a tree beyond it."""

from __future__ import annotations

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


class DraftRows:
    """T tokens of one sequence in a forward pass; see `engine.models.block.Attention`.

    Args:
        cells: The sequence's.
        start: Slot of the first of them; those before it hold what they may see.
        cos: Of their positions, [T, 1, d].
        sin: [T, 1, d].
        visible: Which slots each sees, [T, start + T] bool; None: all before it and itself.
    """

    def __init__(
        self, cells: DraftCells, start: int, cos: Tensor, sin: Tensor, visible: Tensor | None
    ) -> None:
        T = cos.shape[0]
        half = sin.shape[-1] // 2
        self._cells = cells.blocks
        self._slots = slice(start, start + T)
        self._cos = cos
        # With its first half negated, x cos + swap(x) sin rotates, where swap exchanges halves.
        self._sin = torch.cat((-sin[..., :half], sin[..., half:]), dim=-1)
        self._is_causal = visible is None and start == 0 and T > 1
        if visible is None and start > 0 and T > 1:
            visible = torch.ones(T, start + T, dtype=torch.bool, device=cos.device).tril(start)
        self._visible = visible

    def rotate_(self, heads: Tensor) -> None:
        """See `Attention`."""
        first, second = heads.chunk(2, dim=-1)
        swapped = torch.cat((second, first), dim=-1)
        heads.mul_(self._cos).addcmul_(swapped, self._sin)

    def attend(
        self, query: Tensor, new: Tensor, index: int, *, window: int | None, scaling: float
    ) -> Tensor:
        """See `Attention`; a model's context is never longer than its window here."""
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
