"""Pruning within a forward pass: drafts judged as soon as their hidden states are far enough."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from engine.core.plans import Span
from engine.protocol.rows import Row
from engine.speculation.pruner import Pruner
from engine.speculation.tree import TokenTree


class Judging:
    """The drafts of one pass through a first stage.

    Args:
        pruner: Judges.
        num_blocks: After so many.
        rows: Of the pass.
        ids: [N], of all rows.
        thresholds: τ of each row; 0: nothing of it is left out.
    """

    def __init__(
        self,
        pruner: Pruner,
        num_blocks: int,
        rows: Sequence[Row],
        ids: npt.NDArray[np.int32],
        thresholds: Sequence[float],
    ) -> None:
        self._pruner = pruner
        self._num_blocks = num_blocks
        self._judged: list[int] = []
        """Which of the rows."""
        self._trees: list[TokenTree] = []
        self._thresholds: list[float] = []
        self._places: list[int] = []
        """Of each tree's last committed token and of its nodes, among the N."""
        self.kept: list[tuple[bool, ...]] = [()] * len(rows)
        """For each row what `Row.kept` shall be."""
        self.seconds = 0.0
        end = 0
        for index, (row, threshold) in enumerate(zip(rows, thresholds, strict=True)):
            end += row.count
            if threshold > 0 and row.parents:
                first = end - len(row.parents)
                self._judged.append(index)
                self._trees.append(TokenTree(tuple(ids[first:end].tolist()), row.parents))
                self._thresholds.append(threshold)
                self._places.extend(range(first - 1, end))

    def observe(self, num_blocks: int, x: Tensor) -> None:
        """See `BlockStack.forward`."""
        if num_blocks != self._num_blocks or not self._trees:
            return
        hidden = x[self._places].float().cpu()  # waits for the device
        started_s = time.perf_counter()
        judged = self._pruner.kept(self._trees, hidden, self._thresholds)
        for index, tree, kept in zip(self._judged, self._trees, judged, strict=True):
            survivors = set(tree.pruned(kept)[1])
            if len(survivors) < len(tree):
                self.kept[index] = tuple(node in survivors for node in range(len(tree)))
        self.seconds += time.perf_counter() - started_s


def judging_for(
    pruners: Mapping[int, Pruner],
    span: Span,
    num_hidden_layers: int,
    rows: Sequence[Row],
    ids: npt.NDArray[np.int32],
    thresholds: Sequence[float],
) -> Judging | None:
    """What judges the drafts of a pass; None: nothing does.

    Of several pruners the one that sees the most blocks is used: it knows more.

    Args:
        pruners: By the blocks after which they judge.
        span: Of the pass.
        num_hidden_layers: Of the model.
        rows: See `Judging`.
        ids: See `Judging`.
        thresholds: See `Judging`; empty: nothing is left out.
    """
    if not any(thresholds) or span.start > 0 or span.end == num_hidden_layers:
        return None
    depth = max((depth for depth in pruners if depth <= span.end), default=None)
    return None if depth is None else Judging(pruners[depth], depth, rows, ids, thresholds)
