"""How the tokens of a row see each other when the last of them are a draft's tree."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class TreeShape:
    """T tokens of a row: committed ones, and N of a draft that hangs from the last of these.

    Args:
        count: T.
        parents: [N], for each of the draft's tokens which of them it follows; -1: the last committed
            one. Parents come before their children.
    """

    def __init__(self, count: int, parents: Sequence[int]) -> None:
        committed = count - len(parents)
        self.offsets = torch.tensor(row_offsets(count, parents))
        """[T], positions in the sequence, counted from the row's first token."""
        self.sees = torch.ones(count, count, dtype=torch.bool).tril_()
        """[T, T], whether a token sees another: itself, its ancestors, and what is committed."""
        for node, parent in enumerate(parents):
            self.sees[committed + node] = self.sees[committed + parent]
            self.sees[committed + node, committed + node] = True

    def visible(self, skipped: int, count: int, columns: Tensor, window: int | None) -> Tensor:
        """Whether some of the tokens see what lies before and among them.

        Args:
            skipped: The first of them.
            count: How many, t.
            columns: [S], places in the cache, counted from the row's first token.
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
        return seen


def row_offsets(count: int, parents: Sequence[int]) -> list[int]:
    """Positions of a row's tokens, counted from its first one; see `TreeShape`."""
    committed = count - len(parents)
    offsets = list(range(committed))
    for parent in parents:
        offsets.append(offsets[committed + parent] + 1)
    return offsets
