"""Rows over one part of their caches, and how one of them is computed alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from engine.kv.part import Part
from engine.models.partial_attention import Partial, attend_partly
from engine.models.tree_shape import TreeShape


@dataclass(frozen=True, slots=True)
class PartRow:
    """T tokens that lie one behind another in their sequence's cache, and a part of it they see."""

    part: Part
    start: int
    """Where the row begins among the packed tokens."""
    count: int
    """T."""
    position: int
    """Of the first token, counted within the part; the part may end before it."""
    tree: TreeShape | None = None
    """What they see, when some are a draft's that is no chain."""
    skipped: int = 0
    """Tokens of the tree that come before these."""

    @property
    def end(self) -> int:
        """How far into the part its last token sees."""
        return min(self.position + self.count, self.part.num_tokens)

    def first_seen(self, window: int | None) -> int:
        """Where in the part begins what some token sees."""
        if window is None:
            return 0
        position = self.position
        if self.tree is not None:
            position += int(self.tree.offsets[self.skipped :].min()) - self.skipped
        return max(0, position - window + 1)

    def last_reader(self, window: int | None) -> int:
        """Where the tokens begin that have left the whole part behind their window."""
        if window is None:
            return self.count
        left_at = self.part.num_tokens + window - 1 - self.position
        if self.tree is None:
            return min(self.count, left_at)
        offsets = self.tree.offsets[self.skipped :] - self.skipped
        seeing = (offsets < left_at).nonzero()
        return int(seeing[-1]) + 1 if len(seeing) else 0

    def cut(self, first: int, end: int, start: int) -> PartRow:
        """Its tokens from `first` to `end`, which lie at `start` among the packed ones."""
        return replace(
            self,
            start=start,
            count=end - first,
            position=self.position + first,
            skipped=self.skipped + first,
        )


class WholeOperation(Protocol):
    """What is done at once, for n tokens among N that lie packed on the device of whole caches."""

    def covers(self, num_tokens: int) -> bool:
        """Whether these tokens are all there are, in their order."""
        ...

    def of(self, x: Tensor) -> Tensor:
        """These tokens' part of [N, …]."""
        ...

    def write(self, whole: Tensor, x: Tensor) -> None:
        """Write these tokens' part of [N, …]."""
        ...

    def put(self, new: Tensor, index: int) -> None:
        """Store keys and values, [n, 2K, d], in a block; their places are within the part."""
        ...

    def attend(self, query: Tensor, index: int, window: int | None, scaling: float) -> Tensor:
        """From [n, H, d] to [n, H * d]."""
        ...


class RowOperation(WholeOperation, Protocol):
    """The same, also for parts of caches."""

    def attend_partly(
        self, query: Tensor, index: int, window: int | None, scaling: float
    ) -> Partial:
        """From [n, H, d] to [n, H, d], to be merged with what the rows see elsewhere."""
        ...


class SingleRow:
    """One row; see `RowOperation`."""

    def __init__(self, row: PartRow, dtype: torch.dtype) -> None:
        self._row = row
        self._dtype = dtype
        self._masks: dict[int | None, Tensor] = {}

    def covers(self, num_tokens: int) -> bool:
        """See `RowOperation`."""
        return self._row.count == num_tokens

    def of(self, x: Tensor) -> Tensor:
        """See `RowOperation`."""
        return x.narrow(0, self._row.start, self._row.count)

    def write(self, whole: Tensor, x: Tensor) -> None:
        """See `RowOperation`."""
        self.of(whole).copy_(x)

    def put(self, new: Tensor, index: int) -> None:
        """See `RowOperation`."""
        self._row.part.put(index, self._row.position, new)

    def attend(self, query: Tensor, index: int, window: int | None, scaling: float) -> Tensor:
        """See `RowOperation`."""
        T, H, d = query.shape
        keys, values, window = self._seen(index, window)
        if T == 1 and self._row.tree is None:
            grouped = query.view(1, keys.shape[1], -1, d)
            out = scaled_dot_product_attention(grouped, keys, values, scale=scaling)
            return out.reshape(1, H * d)
        is_fresh = self._is_fresh(window)
        out = scaled_dot_product_attention(
            query.transpose(0, 1)[None],  # [1, H, T, d]
            keys,
            values,
            None if is_fresh else self._mask(window),
            is_causal=is_fresh,
            scale=scaling,
            enable_gqa=True,
        )
        return out[0].transpose(0, 1).reshape(T, H * d)

    def attend_partly(
        self, query: Tensor, index: int, window: int | None, scaling: float
    ) -> Partial:
        """See `RowOperation`."""
        T, H, d = query.shape
        keys, values, window = self._seen(index, window)
        if T == 1 and self._row.tree is None:
            grouped = query.view(1, keys.shape[1], -1, d)
            part = attend_partly(grouped, keys, values, scaling=scaling)
            return Partial(part.out.reshape(1, H, d), part.lse.reshape(1, H))
        is_fresh = self._is_fresh(window)
        sees_all = window is None and self._row.position - self._row.skipped + 1 >= self._row.end
        mask = None if is_fresh or sees_all else self._mask(window)
        blind = None
        if self._row.tree is not None and window is not None and mask is not None:
            # Of a tree's tokens some may have left the part behind while later ones have not.
            blind = mask.isneginf().all(-1)
            mask = mask.masked_fill(blind[:, None], 0)
        part = attend_partly(
            query.transpose(0, 1)[None],  # [1, H, T, d]
            keys,
            values,
            mask=mask,
            is_causal=is_fresh,
            scaling=scaling,
        )
        lse = part.lse[0].transpose(0, 1)
        if blind is not None:
            lse = lse.masked_fill(blind[:, None], -torch.inf)
        return Partial(part.out[0].transpose(0, 1), lse)

    def _seen(self, index: int, window: int | None) -> tuple[Tensor, Tensor, int | None]:
        """Keys and values that some token sees, [1, K, S, d]; and the window if it matters."""
        row = self._row
        if window is not None and row.position + row.count <= window:
            window = None
        held = row.part.held(index, row.first_seen(window), row.end)
        keys, values = held[None].chunk(2, dim=1)
        return keys, values, window

    def _is_fresh(self, window: int | None) -> bool:
        row = self._row
        return row.position == 0 and row.end == row.count and window is None and row.tree is None

    def _mask(self, window: int | None) -> Tensor:
        """What to add to the scores, [T, S]."""
        if window not in self._masks:
            row, offset = self._row, self._row.first_seen(window)
            if row.tree is not None:
                columns = torch.arange(offset, row.end) - (row.position - row.skipped)
                seen = row.tree.visible(row.skipped, row.count, columns, window)
                mask = where_seen(seen, self._dtype)
                self._masks[window] = mask.to(row.part.device)
                return self._masks[window]
            positions = torch.arange(row.position, row.position + row.count)
            first = torch.zeros_like(positions) if window is None else positions - window + 1
            end = (positions + 1).clamp_max(row.part.num_tokens)
            mask = visible(first - offset, end - offset, row.end - offset, self._dtype)
            self._masks[window] = mask.to(row.part.device)
        return self._masks[window]


def visible(first: Tensor, end: Tensor, num_tokens: int, dtype: torch.dtype) -> Tensor:
    """0 where a token may look, [first, end) for each of n, and -inf elsewhere: [n, num_tokens]."""
    old = torch.arange(num_tokens)[None]
    return where_seen((old >= first[:, None]) & (old < end[:, None]), dtype)


def where_seen(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """What to add to scores: 0 where something is seen, and -inf elsewhere."""
    return torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, -torch.inf)
