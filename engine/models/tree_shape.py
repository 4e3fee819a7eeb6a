"""How the tokens of a row see each other when the last of them are a draft's tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Gap:
    """A draft's places right before a row, when what is kept of it was not brought together yet."""

    size: int
    kept: tuple[int, ...]
    """The sequence's own among them, counted from the first; the others are seen by nobody."""


class TreeShape:
    """T tokens of a row: committed ones, and N of a draft that hangs from the last of these.

    Args:
        count: T.
        parents: [N], for each of the draft's tokens which of them it follows; -1: the last committed
            one. Parents come before their children.
        gap: What lies right before the row, if that is no whole part of the sequence.
    """

    def __init__(self, count: int, parents: Sequence[int], gap: Gap | None = None) -> None:
        committed = count - len(parents)
        self.offsets = torch.tensor(row_offsets(count, parents))
        """[T], positions in the sequence, counted from the row's first token."""
        self.sees = torch.ones(count, count, dtype=torch.bool).tril_()
        """[T, T], whether a token sees another: itself, its ancestors, and what is committed."""
        for node, parent in enumerate(parents):
            self.sees[committed + node] = self.sees[committed + parent]
            self.sees[committed + node, committed + node] = True
        self._holes: Tensor | None = None
        if gap is not None:
            holes = sorted(set(range(gap.size)).difference(gap.kept))
            self._holes = torch.tensor(holes) - gap.size

    def visible(self, skipped: int, count: int, columns: Tensor, window: int | None) -> Tensor:
        """Whether some of the tokens see what lies before and among them.

        Args:
            skipped: The first of them.
            count: How many, t.
            columns: [S], places in the cache one behind another, counted from the row's first
                token; with a gap they begin before it.
            window: Tokens that each token sees, itself included; None: all before it.

        Returns:
            [t, S].
        """
        chosen = slice(skipped, skipped + count)
        own = columns >= 0
        places = columns.clamp_min(0)
        seen = torch.where(own, self.sees[chosen][:, places], True)
        if window is not None:
            positions = torch.where(own, self.offsets[places], columns)
            seen &= self.offsets[chosen, None] - positions < window
        if self._holes is not None:
            seen[:, self._holes - columns[0]] = False
        return seen


def row_offsets(count: int, parents: Sequence[int]) -> list[int]:
    """Positions of a row's tokens, counted from its first one; see `TreeShape`."""
    committed = count - len(parents)
    offsets = list(range(committed))
    for parent in parents:
        before = committed + parent  # none, where a chain goes on from another row's
        offsets.append(offsets[before] + 1 if before >= 0 else 0)
    return offsets
