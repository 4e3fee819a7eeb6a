"""Rows of floats taken apart into byte lanes, and put together again. Pure.

Every element is rotated left by one bit first. That moves the sign, which is a coin toss, to the
very end, so the top byte holds nothing but the exponent (and in float16 the first 3 bits of the
mantissa): the one byte whose values repeat. This *high lane* is then taken relative to a static
byte per channel, since channels differ in size far more than tokens do. The lanes below hold
mantissa bits and are close to noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]

CHUNK_BYTES: Final = 64 << 10
"""Rows worked on at once: the temporaries stay in the cache, which is what makes it fast."""


class ElementType(IntEnum):
    """What the rows consist of. The numbers are those of `engine.protocol.frames.Dtype`."""

    FLOAT32 = 1
    BFLOAT16 = 2
    FLOAT16 = 3

    @property
    def num_bytes(self) -> int:
        """Size of an element; also how many lanes it has."""
        return 4 if self is ElementType.FLOAT32 else 2

    @property
    def patterns(self) -> np.dtype[np.unsignedinteger]:
        """Little-endian unsigned integers of that size, in which the bits are handled."""
        return np.dtype(f"<u{self.num_bytes}")


def high_lane(patterns: npt.NDArray[np.unsignedinteger], dtype: ElementType) -> Bytes:
    """The top bytes after the rotation, of any shape, relative to nothing."""
    return (patterns >> (8 * dtype.num_bytes - 9)).astype(np.uint8)


def split(
    patterns: npt.NDArray[np.unsignedinteger],
    dtype: ElementType,
    shifts: Bytes | None,
    out: Bytes | None = None,
) -> list[Bytes]:
    """Take rows apart.

    Args:
        patterns: Bit patterns, [N, D].
        dtype: What they mean.
        shifts: Subtracted from the high lane modulo 256, [D], or None.
        out: Memory for the lanes, as many bytes as the rows have; fresh if None.

    Returns:
        The lanes, the high one first, each [N, D] and contiguous.
    """
    if out is None:
        out = np.empty(patterns.nbytes, np.uint8)
    lanes = list(out.reshape(dtype.num_bytes, *patterns.shape))
    top_bit = 8 * dtype.num_bytes - 1
    for rows in _chunks(patterns, dtype):
        chunk = patterns[rows]
        high = high_lane(chunk, dtype)
        if shifts is None:
            lanes[0][rows] = high
        else:
            np.subtract(high, shifts, out=lanes[0][rows])
        rotated = chunk << 1
        rotated |= chunk >> top_bit
        lanes[-1][rows] = rotated.astype(np.uint8)
        for byte, lane in enumerate(reversed(lanes[1:-1]), start=1):
            lane[rows] = (rotated >> (8 * byte)).astype(np.uint8)
    return lanes


def join(
    lanes: list[Bytes], dtype: ElementType, shifts: Bytes | None
) -> npt.NDArray[np.unsignedinteger]:
    """Undo `split`.

    Args:
        lanes: As `split` returns them, each [N, D].
        dtype: What the rows consist of.
        shifts: As they were given to `split`.

    Returns:
        Bit patterns, [N, D], in memory of their own.
    """
    patterns = np.empty(lanes[0].shape, dtype.patterns)
    top_bit = 8 * dtype.num_bytes - 1
    for rows in _chunks(patterns, dtype):
        high = lanes[0][rows] if shifts is None else lanes[0][rows] + shifts
        rotated = high.astype(dtype.patterns)
        for lane in lanes[1:]:
            rotated <<= 8
            rotated |= lane[rows]
        np.right_shift(rotated, 1, out=patterns[rows])
        rotated <<= top_bit
        patterns[rows] |= rotated
    return patterns


def _chunks(patterns: npt.NDArray[np.unsignedinteger], dtype: ElementType) -> Iterator[slice]:
    num_rows, width = patterns.shape
    step = max(1, CHUNK_BYTES // max(1, width * dtype.num_bytes))
    return (slice(start, start + step) for start in range(0, num_rows, step))
