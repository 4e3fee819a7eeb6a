"""Rows over one part of their caches, several by one operation.

Rows that bring one token, which is what decoding is made of, share an operation when their caches
lie close together and are of similar length; all others run one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from engine.models.partial_attention import Partial, attend_partly
from engine.models.row_operations import PartRow, RowOperation, SingleRow, visible

_MIN_USEFUL_SHARE = 0.5
"""Of the scores that a group computes, those that some row needs; below it rows run one by one."""


def operations(rows: Sequence[PartRow], dtype: torch.dtype) -> list[RowOperation]:
    """What the rows are computed by; `dtype` is that of their queries."""
    decoding = [row for row in rows if row.count == 1 and row.tree is None]
    near, alone = near_each_other(decoding)
    alone += (row for row in rows if row.count > 1 or row.tree is not None)
    return [
        *(DecodeGroup(members, dtype) for members in near),
        *(SingleRow(row, dtype) for row in alone),
    ]


def near_each_other(rows: Iterable[PartRow]) -> tuple[list[list[PartRow]], list[PartRow]]:
    """Rows for which one operation computes little in vain, in the order of their parts; and the rest."""
    near, others = list[list[PartRow]](), list[PartRow]()
    ordered = sorted(rows, key=lambda row: (row.part.neighbourhood, row.part.order))
    for _, together in groupby(ordered, key=lambda row: row.part.neighbourhood):
        members = list(together)
        useful = sum(row.count * row.end for row in members)
        places = members[0].part.count_places([row.part for row in members])
        computed = places * max(row.count for row in members) * max(row.end for row in members)
        if len(members) > 1 and useful >= _MIN_USEFUL_SHARE * computed:
            near.append(members)
        else:
            others += members
    return near, others


class Group:
    """Rows whose parts can be used together.

    Args:
        rows: In the order of their parts.
        dtype: Of the queries.
    """

    def __init__(self, rows: Sequence[PartRow], dtype: torch.dtype) -> None:
        self._rows = rows
        self._dtype = dtype
        self._device = rows[0].part.device
        self._parts = rows[0].part.group([row.part for row in rows])
        self._end = max(row.end for row in rows)
        each = [(row, token) for row in rows for token in range(row.count)]
        self._order = [row.start + token for row, token in each]
        self._tokens = torch.tensor(self._order, device=self._device)
        positions = [row.position + token for row, token in each]
        self._positions = torch.tensor(positions, device=self._device)

    def covers(self, num_tokens: int) -> bool:
        """See `WholeOperation`."""
        return self._order == list(range(num_tokens))

    def of(self, x: Tensor) -> Tensor:
        """See `WholeOperation`."""
        return x[self._tokens]

    def write(self, whole: Tensor, x: Tensor) -> None:
        """See `WholeOperation`."""
        whole.index_copy_(0, self._tokens, x)


class DecodeGroup(Group):
    """Of one token each; see `RowOperation`."""

    def __init__(self, rows: Sequence[PartRow], dtype: torch.dtype) -> None:
        super().__init__(rows, dtype)
        self._masks: dict[int | None, Tensor | None] = {}

    def put(self, new: Tensor, index: int) -> None:
        """See `RowOperation`."""
        self._parts.put(index, self._positions, new)

    def attend(self, query: Tensor, index: int, window: int | None, scaling: float) -> Tensor:
        """See `RowOperation`."""
        n, H, d = query.shape
        keys, values = self._parts.held(index, self._end).chunk(2, dim=1)
        out = scaled_dot_product_attention(
            self._spread(query, keys), keys, values, self._mask(window), scale=scaling
        )
        return self._parts.collect(out).reshape(n, H * d)

    def attend_partly(
        self, query: Tensor, index: int, window: int | None, scaling: float
    ) -> Partial:
        """See `RowOperation`."""
        n, H, d = query.shape
        keys, values = self._parts.held(index, self._end).chunk(2, dim=1)
        out, lse = attend_partly(
            self._spread(query, keys), keys, values, mask=self._mask(window), scaling=scaling
        )
        return Partial(
            self._parts.collect(out).reshape(n, H, d), self._parts.collect(lse).reshape(n, H)
        )

    def _spread(self, query: Tensor, keys: Tensor) -> Tensor:
        n, H, d = query.shape
        K = keys.shape[1]
        # Heads of a group read the same keys: as so many queries of one head, in one go.
        return self._parts.spread(query.reshape(n, K, H // K, d))

    def _mask(self, window: int | None) -> Tensor | None:
        """What to add to the scores, [places, 1, 1, S]."""
        if window not in self._masks:
            self._masks[window] = self._make_mask(window)
        return self._masks[window]

    def _make_mask(self, window: int | None) -> Tensor | None:
        is_cut = window is not None and any(row.position >= window for row in self._rows)
        if not is_cut and all(row.end == self._end for row in self._rows):
            return None
        # A place between ours, whose result nobody reads, may look at anything but nothing.
        first = torch.zeros(self._parts.num_places, dtype=torch.int64)
        end = torch.full((self._parts.num_places,), self._end)
        places = torch.tensor(self._parts.places)
        if window is not None:
            first[places] = torch.tensor([row.position - window + 1 for row in self._rows])
        end[places] = torch.tensor([row.end for row in self._rows])
        mask = visible(first, end, self._end, self._dtype)
        return mask[:, None, None].to(self._device)
