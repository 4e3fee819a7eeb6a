"""The blocks of one span: load them from a model's files, run packed rows through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import PretrainedConfig

from engine.core.plans import Span
from engine.models.attention import PackedRow, PackedRows
from engine.models.block import Block, fill
from engine.models.families import family_of, window_tokens
from engine.models.weights import load_tensors

Observe = Callable[[int, Tensor], None]
"""Told how many of the model's blocks hidden states [N, D] have passed."""


def make_block(config: PretrainedConfig, block: int, tensors: Mapping[str, Tensor]) -> Block:
    """Build one block.

    Args:
        config: Of the model it belongs to.
        block: Its number there.
        tensors: Named as in the model's files; those of other blocks and of the ends are left out.

    Raises:
        ModelError: The block has parts that we do not compute.
        ModelCorrupt: Weights are missing, unknown, or of another shape.
    """
    with torch.device("meta"):
        layer = family_of(config.model_type).part("DecoderLayer")(config, layer_idx=block)
    prefix = f"model.layers.{block}."
    fill(
        layer,
        {
            name.removeprefix(prefix): tensor
            for name, tensor in tensors.items()
            if name.startswith(prefix)
        },
        prefix,
    )
    return Block(layer.eval(), window_tokens(config, block))


class BlockStack:
    """The blocks of one span, with their weights.

    Args:
        directory: The model's files.
        config: What `families.read_config` returned for them.
        span: Blocks to load.
        dtype: Of weights and arithmetic.
        device: Where to compute.
        progress: Told (blocks loaded, blocks in all) after each.

    Raises:
        ModelError: The blocks have parts that we do not compute.
        ModelCorrupt: Weights are missing, unknown, or of another shape.
    """

    def __init__(
        self,
        directory: Path,
        config: PretrainedConfig,
        span: Span,
        *,
        dtype: torch.dtype,
        device: torch.device,
        progress: Callable[[int, int], None],
    ) -> None:
        self._span = span
        self._device = device
        family = family_of(config.model_type)
        self._rotary = family.part("RotaryEmbedding")(config).to(device)
        self._blocks: list[Block] = []
        for block in range(span.start, span.end):
            tensors = load_tensors(directory, Span(block, block + 1), device, dtype)
            self._blocks.append(make_block(config, block, tensors))
            progress(block + 1 - span.start, len(span))

    @property
    def has_windows(self) -> bool:
        """Whether some block's tokens see only so many before them."""
        return any(block.window is not None for block in self._blocks)

    def forward(
        self, x: Tensor, rows: Sequence[PackedRow], span: Span, observe: Observe | None = None
    ) -> Tensor:
        """Run the blocks of `span`, a part of ours, on packed rows.

        Args:
            x: Hidden states, [N, D].
            rows: Cover the N tokens in order; their caches are for exactly `span`.
            span: The model's numbers.
            observe: Told after each block.

        Returns:
            [N, D]; keys and values are in the caches, whose lengths are the caller's to move.
        """
        positions = torch.tensor([p for row in rows for p in row.positions], device=self._device)
        cos, sin = self._rotary(x, positions[None])  # each [1, N, d]
        packed = PackedRows(rows, cos[0, :, None], sin[0, :, None])
        first = self._span.start
        for index in range(len(span)):
            x = self._blocks[span.start - first + index].forward(x, packed, index)
            if observe is not None:
                observe(span.start + index + 1, x)
        return x
