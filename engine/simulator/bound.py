"""The most that any placement could do: a linear program over memory classes and first blocks.

Machines that hold equally many blocks are one class, whose joint rate may be cut into any pieces.
So the bound is above what whole machines can reach, and still near it when there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.core.errors import ConfigError


class LeastBlockBound:
    """Bounds for one model, with its matrices kept."""

    def __init__(self, num_blocks: int) -> None:
        self._num_blocks = num_blocks
        self._matrices: dict[tuple[int, ...], Any] = {}
        """Memory classes → constraints."""

    def tokens_per_s(self, machines: Sequence[tuple[int, float]]) -> float:
        """The highest rate that the least served block can have.

        Args:
            machines: (Blocks that it holds, tokens/s that it gives each), at most L blocks.

        Raises:
            ConfigError: There is no solver.
        """
        try:
            from scipy.optimize import linprog
        except ImportError as error:
            raise ConfigError(
                "The bound is found by scipy, which is not installed; `pip install scipy` adds it."
            ) from error
        totals: dict[int, float] = {}
        for length, rate in machines:
            totals[length] = totals.get(length, 0.0) + rate
        if not totals:
            return 0.0
        classes = tuple(sorted(totals))
        if classes not in self._matrices:
            self._matrices[classes] = _constraints(self._num_blocks, classes)
        matrix = self._matrices[classes]
        limits = np.concatenate([np.zeros(self._num_blocks), [totals[key] for key in classes]])
        goal = np.zeros(matrix.shape[1])
        goal[-1] = -1.0
        return float(-linprog(goal, A_ub=matrix, b_ub=limits, method="highs").fun)


def _constraints(num_blocks: int, classes: Sequence[int]) -> Any:
    """Columns: each class at each first block, and the least rate; rows: blocks, and classes."""
    from scipy.sparse import csr_matrix

    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    column = 0
    for index, length in enumerate(classes):
        for start in range(num_blocks - length + 1):
            rows += [*range(start, start + length), num_blocks + index]
            columns += [column] * (length + 1)
            values += [-1.0] * length + [1.0]
            column += 1
    rows += range(num_blocks)
    columns += [column] * num_blocks
    values += [1.0] * num_blocks
    shape = (num_blocks + len(classes), column + 1)
    return csr_matrix((values, (rows, columns)), shape=shape)
