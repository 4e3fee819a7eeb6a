"""Rows with drafts over whole caches: several by one operation, where they lie close together.

Per row, as for prompts, the calls cost more than the arithmetic: of a few tokens each, against caches
of some hundred.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from engine.models.row_groups import Group, near_each_other, operations
from engine.models.row_operations import PartRow, WholeOperation, where_seen

_MAX_TOKENS = 65
"""Of a row in a group: the largest draft, and the token before it."""


def whole_operations(rows: Sequence[PartRow], dtype: torch.dtype) -> list[WholeOperation]:
    """What rows are computed by whose parts hold all that they see; `dtype` is that of their queries."""
    drafts, others = list[PartRow](), list[PartRow]()
    for row in rows:
        has_few = row.position > 0 and 1 < row.count <= _MAX_TOKENS
        (drafts if has_few else others).append(row)
    near, alone = near_each_other(drafts)
    return [*(DraftGroup(members, dtype) for members in near), *operations(others + alone, dtype)]


class DraftGroup(Group):
    """Of a few tokens each, the last of them perhaps a draft's; see `WholeOperation`."""

    def __init__(self, rows: Sequence[PartRow], dtype: torch.dtype) -> None:
        super().__init__(rows, dtype)
        self._longest = T = max(row.count for row in rows)
        owners = [i for i, row in enumerate(rows) for _ in range(row.count)]
        self._owners = torch.tensor(owners, device=self._device)
        places = [
            self._parts.places[i] * T + n for i, row in enumerate(rows) for n in range(row.count)
        ]
        self._places = torch.tensor(places, device=self._device)
        self._masks: dict[int | None, Tensor] = {}

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
