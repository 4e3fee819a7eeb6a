"""Rows that occur more than once, sent once. Pure.

Equal prompts and padding give rows that are equal bit for bit, far apart from each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.codec import entropy
from engine.core.errors import FrameCorrupt

_DISTANCE: Final = np.dtype("<u4")
_MIN_GAIN: Final = 4
"""Bytes of rows that a byte of index must save, as the rows would have been compressed too."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Which rows to send, and how to get the others from them."""

    kept: npt.NDArray[np.intp]
    """The rows to send, ascending."""
    index: bytes
    """For each row the distance to its last equal before it, 0 for a kept row; compressed."""


def find(rows: npt.NDArray[np.unsignedinteger]) -> Repeats | None:
    """Find repeated rows.

    Args:
        rows: Bit patterns, [N, D].

    Returns:
        None when there are none, or too few to pay.
    """
    num_rows, width = rows.shape
    if num_rows < 2 or not width or not _may_repeat(rows):
        return None
    last: dict[bytes, int] = {}
    distances = np.zeros(num_rows, _DISTANCE)
    for at, row in enumerate(rows):
        key = row.tobytes()
        distances[at] = at - last.get(key, at)
        last[key] = at
    kept = np.flatnonzero(distances == 0)
    index = entropy.code_with_matches(distances.tobytes())
    saved_bytes = (num_rows - len(kept)) * width * rows.itemsize
    return Repeats(kept, index) if saved_bytes > _MIN_GAIN * len(index) else None


def read_sources(index: memoryview, num_rows: int, num_kept: int) -> npt.NDArray[np.intp]:
    """Read where each row comes from.

    Args:
        index: As in `Repeats`.
        num_rows: N.
        num_kept: How many rows were sent.

    Returns:
        Each row's place among the sent ones, [N].

    Raises:
        FrameCorrupt: The index does not describe that many rows.
    """
    distances = np.frombuffer(entropy.decode(index, num_rows * _DISTANCE.itemsize), _DISTANCE)
    fresh = distances == 0
    if int(fresh.sum()) != num_kept or (distances > np.arange(num_rows)).any():
        raise FrameCorrupt("The peer sent a compressed payload whose row index is damaged.")
    sources = np.cumsum(fresh) - 1
    for at in np.flatnonzero(~fresh).tolist():  # in order: a source may itself be a repeat
        sources[at] = sources[at - int(distances[at])]
    return sources


def _may_repeat(rows: npt.NDArray[np.unsignedinteger]) -> bool:
    """Whether two rows agree in 64 bits taken from all over them; rarely wrong, and fast."""
    num_columns = 8 // rows.itemsize
    keys = rows[:, 0].astype(np.uint64)
    for column in range(1, num_columns):
        keys <<= 8 * rows.itemsize
        keys |= rows[:, (rows.shape[1] - 1) * column // (num_columns - 1)]
    keys.sort()
    return bool((keys[1:] == keys[:-1]).any())
