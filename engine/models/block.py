"""Blocks: `transformers` decoder layers over our own cache and attention.

Rows of different sequences lie packed in one [N, D] tensor. Everything but attention treats tokens
alike and runs on the whole; attention runs row by row, each over its own sequence's cache, so a
row's result never depends on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PretrainedConfig

from engine.core.errors import ModelCorrupt
from engine.core.plans import Span
from engine.kv.cache import SequenceCache
from engine.models.families import family_of, window_tokens
from engine.models.packed_linear import pack_linears
from engine.models.weights import load_tensors

_ATTENTION = "shoal"


@dataclass(frozen=True, slots=True)
class PackedRow:
    """T consecutive tokens of one sequence."""

    cache: SequenceCache
    start: int
    """Where the row begins among the packed tokens."""
    count: int
    """T."""
    position: int
    """S: tokens of the sequence that lie before it in the cache."""


@dataclass(slots=True)
class PackedRows:
    """The rows of one forward pass; stands where a decoder layer expects its cache."""

    rows: Sequence[PackedRow]
    first_block: int
    """The model's number of the block that is first in these rows' caches."""
    _masks: dict[tuple[int, int, int | None], Tensor] = field(default_factory=dict)

    def update(self, key: Tensor, value: Tensor, layer_idx: int, **_: Any) -> tuple[Tensor, Tensor]:
        """Store the new keys and values, [1, K, N, d], in each row's own cache."""
        block = layer_idx - self.first_block
        for row in self.rows:
            tokens = slice(row.start, row.start + row.count)
            row.cache.write(block, row.position, key[0, :, tokens], value[0, :, tokens])
        return key, value

    def mask(self, row: PackedRow, window: int | None, like: Tensor) -> Tensor:
        """What to add to the scores of a row with more than one token, [T, S + T]."""
        key = (row.count, row.position, window)
        if key not in self._masks:
            new = torch.arange(row.position, row.position + row.count, device=like.device)[:, None]
            old = torch.arange(row.position + row.count, device=like.device)[None, :]
            seen = old <= new
            if window is not None:
                seen &= old > new - window
            self._masks[key] = torch.zeros(
                seen.shape, dtype=like.dtype, device=like.device
            ).masked_fill_(~seen, -torch.inf)
        return self._masks[key]


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    rows: PackedRows,
    window: int | None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of packed rows, each to its own sequence; called by the decoder layer.

    Args:
        module: The layer's attention module.
        query: [1, H, N, d].
        key: Already in the rows' caches.
        value: Already in the rows' caches.
        attention_mask: Not used: causality follows from the rows.
        scaling: Factor of the scores.
        rows: Whose tokens these are.
        window: Tokens that each sees, itself included; None: all before it.

    Returns:
        [1, N, H, d], and no attention weights.
    """
    H, N, d = query.shape[1:]
    block = module.layer_idx - rows.first_block  # type: ignore[operator]
    out = query.new_empty(1, N, H, d)
    for row in rows.rows:
        end = row.position + row.count
        first = 0 if window is None else max(0, row.position + 1 - window)
        keys = row.cache.keys[block][None, :, first:end]  # [1, K, S + T, d]
        values = row.cache.values[block][None, :, first:end]
        queries = query[:, :, row.start : row.start + row.count]  # [1, H, T, d]
        mask = None
        if row.count > 1:
            mask = rows.mask(row, window, query)[:, first:]
        result = scaled_dot_product_attention(
            queries, keys, values, mask, scale=scaling, enable_gqa=True
        )
        out[:, row.start : row.start + row.count] = result.transpose(1, 2)
    return out, None


AttentionInterface.register(_ATTENTION, attend)


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
        self.span = span
        self._device = device
        config._attn_implementation = _ATTENTION
        family = family_of(config.model_type)
        self._rotary = family.part("RotaryEmbedding")(config).to(device)
        self._layers: list[nn.Module] = []
        self._windows = [window_tokens(config, block) for block in range(span.start, span.end)]
        for block in range(span.start, span.end):
            with torch.device("meta"):
                layer = family.part("DecoderLayer")(config, layer_idx=block)
            prefix = f"model.layers.{block}."
            tensors = load_tensors(directory, Span(block, block + 1), device, dtype)
            own = {name: tensors[name] for name in tensors if name.startswith(prefix)}
            fill(layer, {name.removeprefix(prefix): own[name] for name in own}, prefix)
            pack_linears(layer)
            self._layers.append(layer.eval())
            progress(block + 1 - span.start, len(span))

    def forward(self, hidden: Tensor, rows: Sequence[PackedRow], span: Span) -> Tensor:
        """Run the blocks of `span`, a part of ours, on packed rows.

        Args:
            hidden: [N, D].
            rows: Cover the N tokens in order; their caches are for exactly `span`.
            span: The model's numbers.

        Returns:
            [N, D]; keys and values are in the caches, whose lengths are the caller's to move.
        """
        packed = PackedRows(rows, span.start)
        positions = torch.cat(
            [torch.arange(row.position, row.position + row.count) for row in rows]
        ).to(self._device)
        x = hidden[None]  # [1, N, D]
        tables = self._rotary(x, positions[None])
        first = self.span.start
        for block in range(span.start - first, span.end - first):
            x = self._layers[block](
                x,
                cache=packed,
                position_embeddings=tables,
                rows=packed,
                window=self._windows[block],
            )
        return x[0]


def fill(module: nn.Module, tensors: dict[str, Tensor], prefix: str) -> None:
    """Give a module made on the meta device its weights.

    Raises:
        ModelCorrupt: Some are missing or unknown; a block computed without them would be wrong.
    """
    # Old checkpoints store the rotary frequencies, which follow from the config.
    tensors = {name: t for name, t in tensors.items() if not name.endswith("rotary_emb.inv_freq")}
    expected = module.state_dict()
    missing = sorted(prefix + name for name in expected.keys() - tensors.keys())
    unknown = sorted(prefix + name for name in tensors.keys() - expected.keys())
    misshapen = sorted(
        prefix + name
        for name in expected.keys() & tensors.keys()
        if expected[name].shape != tensors[name].shape
    )
    for what, names in (("missing", missing), ("unknown", unknown), ("misshapen", misshapen)):
        if names:
            raise ModelCorrupt(
                f"The model's files have {what} weights: {', '.join(names)}. Fetch it again."
            )
    module.load_state_dict(tensors, assign=True)
    module.requires_grad_(requires_grad=False)
