"""Rows with drafts over whole caches: several by one operation, where they lie close together.

Per row, as for prompts, the calls cost more than the arithmetic: of a few tokens each, against caches
of some hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from engine.models.row_operations import (
    MIN_USEFUL_SHARE,
    PartRow,
    WholeOperation,
    operations,
    where_seen,
)

_MAX_TOKENS = 65
"""Of a row in a group: the largest draft, and the token before it."""


def whole_operations(rows: Sequence[PartRow], dtype: torch.dtype) -> list[WholeOperation]:
    """What rows are computed by whose parts hold all that they see; `dtype` is that of their queries."""
    drafts, others = list[PartRow](), list[PartRow]()
    for row in rows:
        has_few = row.position > 0 and 1 < row.count <= _MAX_TOKENS
        (drafts if has_few else others).append(row)
    drafts.sort(key=lambda row: (row.part.neighbourhood, row.part.order))
    made: list[WholeOperation] = []
    for _, members in groupby(drafts, key=lambda row: row.part.neighbourhood):
        near = list(members)
        if _may_share(near):
            made.append(DraftGroup(near, dtype))
        else:
            others += near
    made += operations(others, dtype)
    return made


def _may_share(rows: Sequence[PartRow]) -> bool:
    """Whether one operation for all computes little in vain."""
    useful = sum(row.count * row.end for row in rows)
    places = rows[0].part.count_places([row.part for row in rows])
    computed = places * max(row.count for row in rows) * max(row.end for row in rows)
    return len(rows) > 1 and useful >= MIN_USEFUL_SHARE * computed


class DraftGroup:
    """Rows of a few tokens each, the last of them perhaps a draft's; see `WholeOperation`.

    Args:
        rows: In the order of their parts.
        dtype: Of the queries.
    """

    def __init__(self, rows: Sequence[PartRow], dtype: torch.dtype) -> None:
        self._rows = rows
        self._dtype = dtype
        self._device = device = rows[0].part.device
        self._parts = rows[0].part.group([row.part for row in rows])
        self._end = max(row.end for row in rows)
        self._longest = T = max(row.count for row in rows)
        each = [(i, row, token) for i, row in enumerate(rows) for token in range(row.count)]
        self._order = [row.start + token for _, row, token in each]
        self._tokens = torch.tensor(self._order, device=device)
        self._owners = torch.tensor([i for i, _, _ in each], device=device)
        positions = [row.position + token for _, row, token in each]
        self._positions = torch.tensor(positions, device=device)
        places = [self._parts.places[i] * T + token for i, _, token in each]
        self._places = torch.tensor(places, device=device)
        self._masks: dict[int | None, Tensor] = {}

    def covers(self, num_tokens: int) -> bool:
        """See `WholeOperation`."""
        return self._order == list(range(num_tokens))

    def of(self, x: Tensor) -> Tensor:
        """See `WholeOperation`."""
        return x[self._tokens]

    def write(self, whole: Tensor, x: Tensor) -> None:
        """See `WholeOperation`."""
        whole.index_copy_(0, self._tokens, x)

    def put(self, new: Tensor, index: int) -> None:
        """See `WholeOperation`."""
        self._parts.put(index, self._positions, new, self._owners)

    def attend(self, query: Tensor, index: int, window: int | None, scaling: float) -> Tensor:
        """See `WholeOperation`."""
        H, d = query.shape[1:]
        R, T = self._parts.num_places, self._longest
        keys, values = self._parts.held(index, self._end).chunk(2, dim=1)  # each [R, K, S, d]
        K = keys.shape[1]
        spread = query.new_zeros(R * T, H, d).index_copy_(0, self._places, query)
        # Heads of a group read the same keys: as so many queries of one head, in one go.
        grouped = spread.view(R, T, K, H // K, d).permute(0, 2, 3, 1, 4).reshape(R, K, -1, d)
        mask = self._mask(window)[:, None, None].expand(-1, -1, H // K, -1, -1).flatten(2, 3)
        out = scaled_dot_product_attention(grouped, keys, values, mask, scale=scaling)
        ordered = out.view(R, K, H // K, T, d).permute(0, 3, 1, 2, 4).reshape(R * T, H * d)
        return ordered.index_select(0, self._places)

    def _mask(self, window: int | None) -> Tensor:
        """What to add to the scores, [R, T, S]."""
        if window not in self._masks:
            # What nobody reads may look at anything but nothing.
            seen = torch.ones(self._parts.num_places, self._longest, self._end, dtype=torch.bool)
            for row, place in zip(self._rows, self._parts.places, strict=True):
                seen[place, : row.count] = _seen_by(row, self._end, window)
            self._masks[window] = where_seen(seen, self._dtype).to(self._device)
        return self._masks[window]


def _seen_by(row: PartRow, num_tokens: int, window: int | None) -> Tensor:
    """Which of a sequence's first tokens those of a row see, [T, num_tokens]."""
    columns = torch.arange(num_tokens)
    if row.tree is None:
        positions = torch.arange(row.position, row.end)[:, None]
        seen = columns <= positions
        return seen if window is None else seen & (columns > positions - window)
    seen = torch.zeros(row.count, num_tokens, dtype=torch.bool)
    seen[:, : row.end] = row.tree.visible(0, row.count, columns[: row.end] - row.position, window)
    return seen
