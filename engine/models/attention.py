"""Attention of packed rows, each over its own sequence's cache.

Rows that bring one token, which is what decoding is made of, share an operation when their caches
lie close together and are of similar length; all others run one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from engine.kv.cache import SequenceCache

_MIN_USEFUL_SHARE = 0.5
"""Of the scores that a group computes, those that some row needs; below it rows run one by one."""


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
        self._masks: dict[tuple[int, int, int | None], Tensor] = {}
        self._groups, self._singles = _grouped(rows, cos)
        # What covers all tokens in their order needs no picking apart.
        self._only_row = rows[0] if len(rows) == 1 else None
        self._only_group = next((g for g in self._groups if g.covers(len(cos))), None)

    def rotate_(self, heads: Tensor) -> None:
        """Turn queries or keys, [N, heads, d], to their positions, in place."""
        first, second = heads.chunk(2, dim=-1)
        swapped = torch.cat((second, first), dim=-1)
        heads.mul_(self._cos).addcmul_(swapped, self._sin)

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
        N = query.shape[0]
        if self._only_group is not None:
            return self._only_group.attend(query, new, index, window, scaling)
        if self._only_row is not None:
            return self._attend_row(self._only_row, query, new, index, window, scaling)
        out = query.new_empty(N, query.shape[1] * query.shape[2])
        for group in self._groups:
            part = group.attend(query[group.tokens], new[group.tokens], index, window, scaling)
            out.index_copy_(0, group.tokens, part)
        for row in self._singles:
            part = self._attend_row(
                row,
                query.narrow(0, row.start, row.count),
                new.narrow(0, row.start, row.count),
                index,
                window,
                scaling,
            )
            out.narrow(0, row.start, row.count).copy_(part)
        return out

    def _attend_row(
        self,
        row: PackedRow,
        query: Tensor,
        new: Tensor,
        index: int,
        window: int | None,
        scaling: float,
    ) -> Tensor:
        """One row's [T, H, d] and [T, 2K, d] to [T, H * d]."""
        T, H, d = query.shape
        keys, values = row.cache.put(index, row.position, new)
        if window is not None and row.position + T <= window:
            window = None
        if T == 1:
            if window is not None:
                keys, values = keys[:, :, -window:], values[:, :, -window:]
            grouped = query.view(1, keys.shape[1], -1, d)
            out = scaled_dot_product_attention(grouped, keys, values, scale=scaling)
            return out.reshape(1, H * d)
        is_fresh = row.position == 0 and window is None
        out = scaled_dot_product_attention(
            query.transpose(0, 1)[None],  # [1, H, T, d]
            keys,
            values,
            None if is_fresh else self._mask(row, window),
            is_causal=is_fresh,
            scale=scaling,
            enable_gqa=True,
        )
        return out[0].transpose(0, 1).reshape(T, H * d)

    def _mask(self, row: PackedRow, window: int | None) -> Tensor:
        """What to add to the scores of a row with more than one token, [T, S + T]."""
        key = (row.count, row.position, window)
        if key not in self._masks:
            positions = torch.arange(row.position, row.position + row.count)
            self._masks[key] = _mask(positions, row.position + row.count, window, self._cos)
        return self._masks[key]


class _DecodeGroup:
    """Rows of one token each, in neighbouring slots of one slab.

    Args:
        rows: In the order of their slots.
        like: Has the queries' type and device.
    """

    def __init__(self, rows: Sequence[PackedRow], like: Tensor) -> None:
        device = like.device
        self.tokens = torch.tensor([row.start for row in rows], device=device)
        self._slab = rows[0].cache.slab
        self._first = rows[0].cache.slot
        self._num_slots = rows[-1].cache.slot - self._first + 1
        self._places = [row.cache.slot - self._first for row in rows]
        self._slots = torch.tensor([row.cache.slot for row in rows], device=device)
        positions = [row.position for row in rows]
        self._positions = torch.tensor(positions, device=device)
        self._end = max(positions) + 1
        self._is_even = min(positions) == max(positions)
        self._has_gaps = self._num_slots != len(rows)
        self._place_index = torch.tensor(self._places, device=device)
        self._masks: dict[int | None, Tensor] = {}
        self._like = like

    def covers(self, num_tokens: int) -> bool:
        """Whether the group's rows are all there are, in the order of their slots."""
        return self.tokens.tolist() == list(range(num_tokens))

    def attend(
        self, query: Tensor, new: Tensor, index: int, window: int | None, scaling: float
    ) -> Tensor:
        """The group's [n, H, d] and [n, 2K, d] to [n, H * d]."""
        n, H, d = query.shape
        K = new.shape[1] // 2
        block = self._slab.blocks[index]  # [R, 2K, C, d]
        block[self._slots, :, self._positions] = new
        held = block[self._first : self._first + self._num_slots, :, : self._end]
        # Heads of a group read the same keys: as so many queries of one head, in one go.
        grouped = query.reshape(n, K, H // K, d)
        if self._has_gaps:
            grouped = query.new_zeros(self._num_slots, K, H // K, d).index_copy_(
                0, self._place_index, grouped
            )
        out = scaled_dot_product_attention(
            grouped, held[:, :K], held[:, K:], self._mask(window), scale=scaling
        )
        if self._has_gaps:
            out = out.index_select(0, self._place_index)
        return out.reshape(n, H * d)

    def _mask(self, window: int | None) -> Tensor | None:
        """What to add to the scores, [slots, 1, 1, S + 1]."""
        if window is not None and window >= self._end:
            window = None
        if self._is_even and window is None:
            return None
        if window not in self._masks:
            # A slot between ours, whose result nobody reads, may look at anything but nothing.
            positions = torch.full((self._num_slots,), self._end - 1)
            positions[self._places] = self._positions.cpu()
            mask = _mask(positions, self._end, window, self._like)
            self._masks[window] = mask[:, None, None]
        return self._masks[window]


def _grouped(rows: Sequence[PackedRow], like: Tensor) -> tuple[list[_DecodeGroup], list[PackedRow]]:
    groups: list[_DecodeGroup] = []
    singles = [row for row in rows if row.count > 1]
    decoding = sorted(
        (row for row in rows if row.count == 1), key=lambda r: (id(r.cache.slab), r.cache.slot)
    )
    for _, members in groupby(decoding, key=lambda r: id(r.cache.slab)):
        same_slab = list(members)
        num_slots = same_slab[-1].cache.slot - same_slab[0].cache.slot + 1
        useful = sum(row.position + 1 for row in same_slab)
        computed = num_slots * (max(row.position for row in same_slab) + 1)
        if len(same_slab) > 1 and useful >= _MIN_USEFUL_SHARE * computed:
            groups.append(_DecodeGroup(same_slab, like))
        else:
            singles += same_slab
    return groups, singles


def _mask(positions: Tensor, end: int, window: int | None, like: Tensor) -> Tensor:
    """0 where a token may look and -inf elsewhere, [len(positions), end]."""
    new, old = positions[:, None], torch.arange(end)[None]
    hidden = old > new
    if window is not None:
        hidden |= old <= new - window
    return (
        torch.zeros(hidden.shape, dtype=like.dtype).masked_fill_(hidden, -torch.inf).to(like.device)
    )
