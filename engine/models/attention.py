"""Attention of packed rows, each over its own sequence's cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from engine.kv.cache import SequenceCache
from engine.kv.part import Part
from engine.models.draft_group import whole_operations
from engine.models.row_operations import PartRow
from engine.models.split_attention import SplitAttention
from engine.models.tree_shape import Gap, TreeShape, row_offsets
from engine.protocol.rows import is_chain


@dataclass(frozen=True, slots=True)
class PackedRow:
    """T tokens of one sequence: consecutive ones, the last of them perhaps a draft's tree."""

    cache: SequenceCache
    start: int
    """Where the row begins among the packed tokens."""
    count: int
    """T."""
    position: int
    """S: tokens of the sequence that lie before it in the cache."""
    parents: tuple[int, ...] = ()
    """Of the draft's tokens, see `engine.models.tree_shape`; their keys and values lie one behind
    another as those of a chain do."""
    gap: Gap | None = None
    """What lies right before it; for a cache in one tier, and a model without windows."""

    @property
    def positions(self) -> list[int]:
        """[T], in the sequence."""
        return [self.position + offset for offset in row_offsets(self.count, self.parents)]

    @property
    def place(self) -> int:
        """Of its first token in the cache."""
        return self.position + (self.gap.size - len(self.gap.kept) if self.gap else 0)

    def on(self, part: Part, start: int) -> PartRow:
        """What of it concerns one part of its cache, with its place among the tokens there."""
        is_plain = self.gap is None and is_chain(self.parents)
        tree = None if is_plain else TreeShape(self.count, self.parents, self.gap)
        return PartRow(part, start, self.count, self.place - part.first, tree)


class PackedRows:
    """The rows of one forward pass, and what all its blocks share.

    Args:
        rows: Cover the N tokens in order.
        cos: [N, 1, d].
        sin: [N, 1, d].
    """

    def __init__(self, rows: Sequence[PackedRow], cos: Tensor, sin: Tensor) -> None:
        self._cos = cos
        half = sin.shape[-1] // 2
        # With its first half negated, x cos + swap(x) sin rotates, where swap exchanges halves.
        self._sin = torch.cat((-sin[..., :half], sin[..., half:]), dim=-1)
        self._key_mix = rows[0].cache.key_mix  # the same in all caches of a stage
        whole = [row for row in rows if _is_whole(row.cache, cos.device)]
        self._operations = whole_operations(
            [row.on(row.cache.parts[0], row.start) for row in whole],
            cos.dtype,
        )
        # What covers all tokens in their order needs no picking apart.
        self._only = next((part for part in self._operations if part.covers(len(cos))), None)
        split = [row for row in rows if not _is_whole(row.cache, cos.device)]
        self._split = _split(split, cos)

    def rotate_(self, heads: Tensor) -> None:
        """Turn queries or keys, [N, heads, d], to their positions and as caches want them."""
        first, second = heads.chunk(2, dim=-1)
        swapped = torch.cat((second, first), dim=-1)
        heads.mul_(self._cos).addcmul_(swapped, self._sin)
        if self._key_mix is not None:
            heads.copy_(self._key_mix.turn(heads))

    def attend(
        self, query: Tensor, new: Tensor, index: int, *, window: int | None, scaling: float
    ) -> Tensor:
        """Store the new keys and values, then attend.

        Args:
            query: Rotated, [N, H, d].
            new: Rotated keys of all heads, then values, [N, 2K, d].
            index: The block's place in the rows' caches.
            window: Tokens that each token sees, itself included; None: all before it.
            scaling: Factor of the scores.

        Returns:
            [N, H * d].
        """
        if self._only is not None:
            self._only.put(new, index)
            return self._only.attend(query, index, window, scaling)
        if self._split is not None and not self._operations:
            return self._split.attention.attend(query, new, index, window, scaling)
        out = query.new_empty(query.shape[0], query.shape[1] * query.shape[2])
        for part in self._operations:
            part.put(part.of(new), index)
            part.write(out, part.attend(part.of(query), index, window, scaling))
        if self._split is not None:
            attention, tokens = self._split
            some = attention.attend(query[tokens], new[tokens], index, window, scaling)
            out.index_copy_(0, tokens, some)
        return out


class _Split(NamedTuple):
    """The rows with a RAM tier, and their places among the packed tokens."""

    attention: SplitAttention
    tokens: Tensor


def _split(rows: Sequence[PackedRow], cos: Tensor) -> _Split | None:
    """What computes the rows that the device cannot attend to alone, if there are any."""
    if not rows:
        return None
    near: list[PartRow] = []
    far: list[PartRow] = []
    tokens: list[int] = []
    for row in rows:
        for part, tier in ((row.cache.near, near), (row.cache.far, far)):
            if part is not None:
                tier.append(row.on(part, len(tokens)))
        tokens.extend(range(row.start, row.start + row.count))
    index = torch.tensor(tokens, device=cos.device)
    return _Split(SplitAttention(near, far, cos[index]), index)


def _is_whole(cache: SequenceCache, device: torch.device) -> bool:
    """Whether everything lies where the blocks compute."""
    return cache.far is None or (cache.near is None and device.type == "cpu")
