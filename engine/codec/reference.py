"""What both sides of a link know about its channels before a payload is sent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import xxhash

from engine.codec.entropy import huffman_bytes
from engine.codec.lanes import Bytes, ElementType, high_lane
from engine.core.errors import FrameCorrupt, LocalProtocolError

_REFINEMENTS: Final = 3
"""Rounds after which shifts hardly change."""
MAX_CHOICE_ROWS: Final = 64
"""Rows that a choice among references looks at: more would not change it."""
MAX_KNOWN_REFERENCES: Final = 4
"""The latest that both sides of a link remember."""
_MAX_WIDTH: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The usual size of each channel of one stage boundary.

    Learned once, shipped once; payloads name it by its hash.
    """

    dtype: ElementType
    shifts: Bytes
    """The usual top byte of each channel, after the rotation of `engine.codec.lanes`; [D]."""
    digest: int = field(init=False)
    """Names the reference, 64 bits."""

    def __post_init__(self) -> None:
        shifts = np.array(self.shifts, np.uint8).reshape(-1)  # a copy: nobody changes it under us
        shifts.flags.writeable = False
        object.__setattr__(self, "shifts", shifts)
        digest = xxhash.xxh3_64_intdigest(shifts.tobytes(), seed=int(self.dtype))
        object.__setattr__(self, "digest", digest)

    @property
    def width(self) -> int:
        """D."""
        return len(self.shifts)

    @property
    def num_bytes(self) -> int:
        """What shipping it costs."""
        return 1 + len(self.shifts)

    def shipped(self) -> bytes:
        """As it travels: `B element type | shifts`."""
        return bytes([self.dtype]) + self.shifts.tobytes()

    @classmethod
    def received(cls, data: bytes | memoryview) -> Reference:
        """From another node.

        Raises:
            FrameCorrupt: It is none, or one for rows wider than any model's.
        """
        if not 1 < len(data) <= 1 + _MAX_WIDTH or data[0] not in list(ElementType):
            raise FrameCorrupt("The peer sent a reference for rows that no model has.")
        return cls(ElementType(data[0]), np.frombuffer(data, np.uint8, offset=1))


def learn_reference(rows: bytes | memoryview, dtype: ElementType, width: int) -> Reference:
    """Learn a reference from hidden states that passed a stage boundary.

    Args:
        rows: Packed elements, [N, D]; some hundred rows are plenty.
        dtype: What the rows consist of.
        width: D, at least 1.

    Raises:
        LocalProtocolError: Not whole rows, or none.
    """
    row_bytes = width * dtype.num_bytes
    if row_bytes <= 0 or len(rows) == 0 or len(rows) % row_bytes:
        raise LocalProtocolError(
            f"A reference of width {width} cannot be learned from {len(rows)} bytes; "
            "this is a bug, report it."
        )
    patterns = np.frombuffer(rows, dtype.patterns).reshape(-1, width)
    high = high_lane(patterns, dtype)
    # The median of magnitudes: outliers and the odd infinity do not move it.
    medians = np.median(high, axis=0).astype(np.uint8)
    return Reference(dtype, _refine(high, medians))


def choose_reference(
    candidates: Sequence[Reference], rows: bytes | memoryview, dtype: ElementType, width: int
) -> Reference | None:
    """Find which reference makes rows like these smallest, if any does.

    A reference of another layer can cost more than none, so senders choose by trying.

    Args:
        candidates: References; those of another width or type are passed over.
        rows: Packed elements, [N, D]; the first few are looked at.
        dtype: What the rows consist of.
        width: D.

    Returns:
        The best one, or None when none helps.
    """
    row_bytes = width * dtype.num_bytes
    num_rows = min(MAX_CHOICE_ROWS, len(rows) // row_bytes if row_bytes else 0)
    patterns = np.frombuffer(rows, dtype.patterns, num_rows * width).reshape(num_rows, width)
    high = high_lane(patterns, dtype)
    best, best_bytes = None, huffman_bytes(high)
    for candidate in candidates:
        if (candidate.dtype, candidate.width) != (dtype, width):
            continue
        size = huffman_bytes(high - candidate.shifts)
        if size < best_bytes:
            best, best_bytes = candidate, size
    return best


def high_lane_share(
    reference: Reference | None, rows: bytes | memoryview, dtype: ElementType, width: int
) -> float:
    """How small the one lane that references bear on becomes: coded over raw bytes.

    Args:
        reference: Of that type and width.
        rows: Packed elements, [N, D]; at least one.
        dtype: What the rows consist of.
        width: D.
    """
    patterns = np.frombuffer(rows, dtype.patterns).reshape(-1, width)
    high = high_lane(patterns, dtype)
    if reference is not None:
        high -= reference.shifts
    return huffman_bytes(high) / high.size


def _refine(high: Bytes, shifts: Bytes) -> Bytes:
    """Move each channel to where the code made for all channels together spends least on it.

    The channels share one Huffman code, so what counts is not that each is centred but that their
    distributions fall on each other.

    Args:
        high: High lane, [N, D].
        shifts: To begin with, [D].
    """
    width = high.shape[1]
    cells = high + 256 * np.arange(width)
    counts = np.bincount(cells.reshape(-1), minlength=256 * width).reshape(width, 256)
    values = np.arange(256)
    for _ in range(_REFINEMENTS):
        moved = np.take_along_axis(counts, (values + shifts[:, None].astype(np.intp)) % 256, axis=1)
        frequency = moved.sum(axis=0) + 1.0  # a value not yet seen is rare, not impossible
        code_bits = np.log2(frequency.sum() / frequency)
        # What a channel would cost under each shift: its counts correlated with the code, circular
        # as the bytes are. By FFT, since a matrix product would wake every core.
        spectrum = np.fft.rfft(counts) * np.conj(np.fft.rfft(code_bits))
        shifts = np.argmin(np.fft.irfft(spectrum, 256), axis=1).astype(np.uint8)
    return shifts
