"""Encode hidden states in 8 bits an element, rounded; for those alone who allow it. Pure.

[PT] App. A: each group of elements is divided by its largest magnitude, and the quotients, all within
[-1, 1], become the nearest of 256 values that lie denser towards zero. A group is

- ROWS: a row, whose channels have first been divided by their usual size, as a link's reference
  knows it, to a power of two. A large channel then costs the others no precision.
- BLOCKS: 4096 consecutive elements, whatever they are, as in [PT].

```
B version | B layout | Q reference (0: none) | Q xxh3 of what follows, seeded by all of this and shape |
f4 largest magnitude of each group | the bytes, Huffman-coded where that makes them fewer
```
Rows with infinities or NaNs cannot be encoded so; senders then take `engine.codec.payload`.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

from engine.codec import entropy
from engine.codec.lanes import Bytes, ElementType
from engine.codec.reference import Reference
from engine.core.errors import FrameCorrupt

VERSION: Final = 1
BLOCK_ELEMENTS: Final = 4096
_HEADER: Final = struct.Struct("<BBQQ")
_SEED: Final = struct.Struct("<BBQBII")
_MAX_OCTAVES: Final = 16
"""Channels are told apart in size by at most 2 to the power of this, to either side."""
_DECADES: Final = 7

Floats: TypeAlias = npt.NDArray[np.float32]
_LARGEST: Final = {
    ElementType.FLOAT32: np.finfo(np.float32).max,
    ElementType.BFLOAT16: np.uint32(0x7F7F0000).view(np.float32),
    ElementType.FLOAT16: np.float32(np.finfo(np.float16).max),
}


class Layout(IntEnum):
    """What shares one scale. The numbers are those of `engine.protocol.frames.Codec`."""

    ROWS = 2
    BLOCKS = 3


def _dynamic_values() -> Floats:
    """The 256 values, ascending: each decade below 1 has half as many as the one above it."""
    values = [0.0, 1.0]
    for decade in range(_DECADES):
        edges = np.linspace(0.1, 1, (64 >> decade) + 1)
        middles = 10.0**-decade * (edges[1:] + edges[:-1]) / 2
        values += [*middles, *-middles]
    return np.sort(np.array(values, np.float32))


_VALUES: Final = _dynamic_values()


def _nearest_table() -> Bytes:
    """For each float16 the index of the nearest value: a look-up is faster than a search."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    within = np.clip(np.nan_to_num(halves), -1, 1)
    return np.searchsorted((_VALUES[1:] + _VALUES[:-1]) / 2, within).astype(np.uint8)


_NEAREST: Final = _nearest_table()


def encode(
    payload: bytes | memoryview,
    dtype: ElementType,
    width: int,
    layout: Layout,
    reference: Reference | None,
) -> bytes | None:
    """Encode rows, rounded.

    Args:
        payload: Packed elements, [N, D]; whole rows.
        dtype: What the rows consist of.
        width: D.
        layout: What shares one scale.
        reference: What the other side knows too, of the same type and width; for ROWS.

    Returns:
        Fewer bytes than the payload has; None where that is impossible, or where an element is
        infinite or no number.
    """
    if not len(payload):
        return None
    patterns = np.frombuffer(payload, dtype.patterns).reshape(-1, width)
    num_rows = len(patterns)
    if layout is Layout.BLOCKS:
        reference = None
    with np.errstate(over="ignore", invalid="ignore"):
        groups = _grouped(_to_floats(patterns, dtype), layout)
        if reference is not None:
            groups *= _channel_sizes(reference, -1)
        largest = np.abs(groups).max(axis=1, initial=0)
        if not np.isfinite(largest).all():
            return None
        groups /= np.where(largest > 0, largest, 1)[:, None]
    indices = _NEAREST[groups.astype(np.float16).view(np.uint16)].reshape(-1)[: patterns.size]
    body = b"".join([largest.astype("<f4").tobytes(), entropy.code_high_lane(indices)])
    if _HEADER.size + len(body) >= len(payload):
        return None
    digest = 0 if reference is None else reference.digest
    seed = _SEED.pack(VERSION, layout, digest, dtype, num_rows, width)
    return _HEADER.pack(VERSION, layout, digest, _checksum(seed, body)) + body


def decode(
    data: bytes | memoryview,
    dtype: ElementType,
    num_rows: int,
    width: int,
    layout: Layout,
    reference: Reference | None,
) -> memoryview:
    """Decode rows; the receiver knows from the frame what they must be.

    Args:
        data: What `encode` returned.
        dtype: What the rows consist of.
        num_rows: N.
        width: D.
        layout: As given to `encode`.
        reference: The one that `named_reference` names; None if it names none.

    Returns:
        The rows' bytes, [N, D] packed; finite.

    Raises:
        FrameCorrupt: Damaged, of another shape, type, layout or version, or made with another
            reference.
    """
    view = memoryview(data)
    if len(view) < _HEADER.size:
        raise FrameCorrupt("The peer sent a compressed payload that is cut short.")
    version, stated, digest, checksum = _HEADER.unpack_from(view)
    if version != VERSION:
        raise FrameCorrupt(
            f"The peer rounds in version {version} of the format, we know {VERSION}; "
            "update the older of the two."
        )
    body = view[_HEADER.size :]
    seed = _SEED.pack(version, stated, digest, dtype, num_rows, width)
    if stated != layout or _checksum(seed, body) != checksum:
        raise FrameCorrupt("The peer sent a compressed payload whose checksum does not match.")
    if digest != (0 if reference is None else reference.digest):
        raise FrameCorrupt(
            "The peer compressed its payload with a reference that this node does not have."
        )
    num_elements = num_rows * width
    num_groups = num_rows if layout is Layout.ROWS else -(-num_elements // BLOCK_ELEMENTS)
    if len(body) < 4 * num_groups or (layout is Layout.BLOCKS and reference is not None):
        raise FrameCorrupt("The peer sent a compressed payload whose sizes do not add up.")
    largest = np.frombuffer(body, "<f4", num_groups)
    if not (np.isfinite(largest) & (largest >= 0)).all():
        raise FrameCorrupt("The peer sent a compressed payload with impossible sizes in it.")
    indices = np.frombuffer(entropy.decode(body[4 * num_groups :], num_elements), np.uint8)
    floats = _VALUES[indices]
    with np.errstate(over="ignore"):
        if layout is Layout.ROWS:
            rows = floats.reshape(num_rows, width)
            rows *= largest[:, None]
            if reference is not None:
                rows *= _channel_sizes(reference, 1)
        else:
            floats *= np.repeat(largest, BLOCK_ELEMENTS)[:num_elements]
    return _to_patterns(floats, dtype).view(np.uint8).data


def named_reference(data: bytes | memoryview) -> int:
    """Hash of the reference that an encoded payload was made with; 0 for none."""
    return int(_HEADER.unpack_from(data)[2]) if len(data) >= _HEADER.size else 0


def _grouped(floats: Floats, layout: Layout) -> Floats:
    """One group per line; the last block is filled up with zeros."""
    if layout is Layout.ROWS:
        return floats
    flat = floats.reshape(-1)
    missing = -len(flat) % BLOCK_ELEMENTS
    return np.pad(flat, (0, missing)).reshape(-1, BLOCK_ELEMENTS)


def _channel_sizes(reference: Reference, sign: int) -> Floats:
    """Each channel's usual size as a power of two relative to the middle one, [D], or its inverse."""
    steps_per_octave = 8 if reference.dtype is ElementType.FLOAT16 else 1  # 3 bits of mantissa
    shifts = reference.shifts.astype(np.int32)
    octaves = (shifts - int(np.median(shifts))) // steps_per_octave
    octaves = octaves.clip(-_MAX_OCTAVES, _MAX_OCTAVES)
    return np.ldexp(np.float32(1), sign * octaves).astype(np.float32)


def _to_floats(patterns: npt.NDArray[np.unsignedinteger], dtype: ElementType) -> Floats:
    match dtype:
        case ElementType.FLOAT32:
            return patterns.view("<f4").astype(np.float32)  # a copy: it is worked on in place
        case ElementType.BFLOAT16:
            return (patterns.astype(np.uint32) << 16).view(np.float32)
        case ElementType.FLOAT16:
            return patterns.view("<f2").astype(np.float32)


def _to_patterns(floats: Floats, dtype: ElementType) -> npt.NDArray[np.unsignedinteger]:
    """Round to the type; what is beyond its largest number is held there."""
    np.clip(floats, -_LARGEST[dtype], _LARGEST[dtype], out=floats)
    match dtype:
        case ElementType.FLOAT32:
            return floats.astype("<f4").view(dtype.patterns)
        case ElementType.BFLOAT16:
            bits = floats.view(np.uint32)
            bits = bits + (0x7FFF + ((bits >> 16) & 1))  # half to even, as hardware does
            return (bits >> 16).astype(dtype.patterns)
        case ElementType.FLOAT16:
            return floats.astype("<f2").view(dtype.patterns)


def _checksum(seed: bytes, body: bytes | memoryview) -> int:
    return xxhash.xxh3_64_intdigest(body, seed=xxhash.xxh3_64_intdigest(seed))
