"""Names for beginnings of sequences, so that client and stage can find one that they share. Pure.

A sequence is marked every 32 tokens, beyond 2,048 tokens every 64, beyond 4,096 every 128 and so on:
what ends between two marks costs less than 32 tokens, or 1/32 of the length. The digest at a mark
covers every token before it. 128 bits of BLAKE2b: nobody can find a text of his own with the
digest of somebody else's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

MARK_TOKENS = 32
"""The first mark, and the distance between those that follow."""
MAX_MARKS = 512
"""More than any sequence of 2^25 tokens has."""
_MARKS_PER_DISTANCE = 64
_DIGEST_BYTES = 16
DIGEST_PATTERN = r"^[0-9a-f]{32}$"


def marks(tokens: int) -> Iterator[int]:
    """Positions of the marks in the first `tokens` tokens, ascending."""
    at, distance = MARK_TOKENS, MARK_TOKENS
    while at <= tokens:
        yield at
        if at == _MARKS_PER_DISTANCE * distance:
            distance *= 2
        at += distance


def digests(ids: Sequence[int] | npt.NDArray[np.int32]) -> list[str]:
    """The digest at every mark of a sequence, in hexadecimal, in the order of `marks`."""
    data = memoryview(np.asarray(ids, "<i4").tobytes())
    running = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    found, start = [], 0
    for at in marks(len(ids)):
        running.update(data[4 * start : 4 * at])
        found.append(running.hexdigest())
        start = at
    return found
