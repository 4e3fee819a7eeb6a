"""Attention of sequences whose oldest positions lie in RAM.

Each tier is attended to where it lies, at the same time ([BB] eq. 2), and the results are merged.
On a machine without accelerator both tiers are RAM, and the same code runs one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.models.partial_attention import Partial, merge
from engine.models.row_groups import operations
from engine.models.row_operations import PartRow


class SplitAttention:
    """The rows with a RAM tier of one forward pass.

    Args:
        near: What they hold where the blocks compute, for the rows that do; among N tokens.
        far: What they hold in RAM.
        like: Has the queries' type and device; one for each token.
    """

    def __init__(self, near: Sequence[PartRow], far: Sequence[PartRow], like: Tensor) -> None:
        self._near = _Tier(near, like)
        self._far = _Tier(far, like)

    def attend(
        self, query: Tensor, new: Tensor, index: int, window: int | None, scaling: float
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
        near, far = self._near.readers(window), self._far.readers(window)
        receive = _fetch(far.of(query), self._far.writers.of(new))
        self._near.writers.put(self._near.writers.of(new), index)
        near_part = near.attend(near.of(query), index, window, scaling)
        # A GPU computes all that while the CPU does this.
        far_query, far_new = receive()
        self._far.writers.put(far_new, index)
        far_part = _send(far.attend(far_query, index, window, scaling), query.device)
        out = merge(near.spread(near_part, query), far.spread(far_part, query))
        return out.reshape(query.shape[0], -1)


class _Tier:
    """One tier's part of the rows: which tokens are stored there, and which look there."""

    def __init__(self, rows: Sequence[PartRow], like: Tensor) -> None:
        self._rows = rows
        self._like = like
        self._readers: dict[int | None, _Chosen] = {}
        self.writers = _Chosen(
            rows,
            [
                (max(0, -row.position), min(row.count, row.part.num_tokens - row.position))
                for row in rows
            ],
            like,
        )

    def readers(self, window: int | None) -> _Chosen:
        """The tokens that see any of the tier."""
        if window not in self._readers:
            self._readers[window] = _Chosen(
                self._rows,
                [(max(0, -row.position), row.last_reader(window)) for row in self._rows],
                self._like,
            )
        return self._readers[window]


class _Chosen:
    """Some tokens of the rows, with operations shared where they can be.

    Args:
        rows: Among the N tokens.
        ranges: Of each row, the tokens that are chosen.
        like: Has the queries' type and device; one for each of the N tokens.
    """

    def __init__(
        self, rows: Sequence[PartRow], ranges: Sequence[tuple[int, int]], like: Tensor
    ) -> None:
        tokens: list[int] = []
        cut: list[PartRow] = []
        for row, (first, end) in zip(rows, ranges, strict=True):
            if first < end:
                cut.append(row.cut(first, end, len(tokens)))
                tokens.extend(range(row.start + first, row.start + end))
        are_all = tokens == list(range(len(like)))
        self._index = None if are_all else torch.tensor(tokens, dtype=torch.int64).to(like.device)
        self._count = len(tokens)
        self._operations = operations(cut, like.dtype)

    def of(self, x: Tensor) -> Tensor:
        """The chosen tokens' part of [N, …]."""
        return x if self._index is None else x.index_select(0, self._index)

    def spread(self, part: Partial, like: Tensor) -> Partial:
        """The chosen tokens' results among those of all, [N, H, d]: the others see nothing."""
        if self._index is None:
            return part
        nowhere = part.lse.new_full(like.shape[:2], -torch.inf)
        return Partial(
            torch.zeros_like(like).index_copy_(0, self._index, part.out),
            nowhere.index_copy_(0, self._index, part.lse),
        )

    def put(self, new: Tensor, index: int) -> None:
        """Store the chosen tokens' keys and values, [n, 2K, d]."""
        for part in self._operations:
            part.put(part.of(new), index)

    def attend(self, query: Tensor, index: int, window: int | None, scaling: float) -> Partial:
        """The chosen tokens' [n, H, d]."""
        only = self._operations[0] if len(self._operations) == 1 else None
        if only is not None and only.covers(self._count):
            return only.attend_partly(query, index, window, scaling)
        lse_dtype = torch.promote_types(query.dtype, torch.float32)
        whole = Partial(torch.empty_like(query), query.new_empty(query.shape[:2], dtype=lse_dtype))
        for part in self._operations:
            some = part.attend_partly(part.of(query), index, window, scaling)
            part.write(whole.out, some.out)
            part.write(whole.lse, some.lse)
        return whole


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _fetch(*tensors: Tensor) -> Callable[[], list[Tensor]]:
    """Start to bring tensors into RAM; the result waits for them, not for what is queued after."""
    device = tensors[0].device
    if device.type == "cpu":
        return lambda: list(tensors)
    stream = _side_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        here = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True) for t in tensors]
        for target, source in zip(here, tensors, strict=True):
            target.copy_(source, non_blocking=True)
            source.record_stream(stream)
        arrived = stream.record_event()

    def receive() -> list[Tensor]:
        if any(t.numel() for t in here):
            arrived.synchronize()
        return here

    return receive


def _send(part: Partial, device: torch.device) -> Partial:
    """Bring results from RAM, without waiting for them."""
    if device.type == "cpu":
        return part
    return Partial(*(t.contiguous().pin_memory().to(device, non_blocking=True) for t in part))
