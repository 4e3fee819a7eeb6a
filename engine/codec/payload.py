"""Encode and decode the hidden states of one frame, bit for bit. Pure.

```
all, 10 bytes, little endian
  B version | B method | Q xxh3 of the decoded bytes, seeded by type, width and size
RAW     the rows as they are
LANES   Q reference (0: none) | I rows sent | I index bytes | I bytes of each lane, the high first |
        the index, if rows were left out | the lanes
```
A lane (or index) that is as long as the decoded one is stored as it is; a shorter one is a zstd
frame. Whoever decodes knows shape and type already and every size is checked against them before
anything is allocated. The checksum is of what comes out, so neither a damaged payload nor a wrong
reference can pass for hidden states.
"""

from __future__ import annotations

import struct
import threading
from enum import IntEnum
from itertools import pairwise
from typing import Final

import numpy as np
import xxhash

from engine.codec import entropy, lanes, repeats
from engine.codec.lanes import ElementType
from engine.codec.reference import Reference
from engine.core.errors import FrameCorrupt, LocalProtocolError

VERSION: Final = 1
MAX_EXPANSION_BYTES: Final = 16
"""No encoded payload is longer than the rows by more than this."""
_HEADER: Final = struct.Struct("<BBQ")
_LANES_HEADER: Final = struct.Struct("<QII")
_LANE_SIZES: Final = {dtype: struct.Struct(f"<{dtype.num_bytes}I") for dtype in ElementType}
_SEED: Final = struct.Struct("<BQQ")


_MAX_SCRATCH_BYTES: Final = 4 << 20


class _Scratch(threading.local):
    """Memory for lanes, kept from one payload to the next.

    What malloc gives for payloads of this size are fresh pages, and having the kernel clear them
    takes longer than filling them.
    """

    def __init__(self) -> None:
        self._memory: lanes.Bytes = np.empty(0, np.uint8)

    def take(self, num_bytes: int) -> lanes.Bytes:
        """So many bytes, valid until the next call on this thread."""
        if num_bytes > _MAX_SCRATCH_BYTES:
            return np.empty(num_bytes, np.uint8)
        if num_bytes > len(self._memory):
            self._memory = np.empty(num_bytes, np.uint8)
        return self._memory[:num_bytes]


_scratch = _Scratch()


class Method(IntEnum):
    """How the rows follow the header."""

    RAW = 0
    LANES = 1


def encode(
    payload: bytes | memoryview, dtype: ElementType, width: int, reference: Reference | None
) -> bytes:
    """Encode rows.

    Args:
        payload: Packed elements, [N, D]; contiguous. Empty is fine.
        dtype: What the rows consist of.
        width: D.
        reference: What the other side knows too, of the same type and width.

    Returns:
        At most `MAX_EXPANSION_BYTES` more than the payload has.

    Raises:
        LocalProtocolError: Not whole rows, or a reference for others.
    """
    row_bytes = width * dtype.num_bytes
    if len(payload) and (row_bytes <= 0 or len(payload) % row_bytes):
        raise LocalProtocolError(
            f"A payload of {len(payload)} bytes is not made of rows of {row_bytes}; "
            "this is a bug, report it."
        )
    if reference is not None and (reference.dtype, reference.width) != (dtype, width):
        raise LocalProtocolError(
            "Hidden states were to be encoded with a reference of another shape; "
            "this is a bug, report it."
        )
    checksum = _checksum(payload, dtype, width)
    parts = _encode_lanes(payload, dtype, width, reference) if len(payload) else []
    if parts and sum(map(len, parts)) < len(payload):
        return b"".join([_HEADER.pack(VERSION, Method.LANES, checksum), *parts])
    return b"".join([_HEADER.pack(VERSION, Method.RAW, checksum), payload])


def decode(
    data: bytes | memoryview,
    dtype: ElementType,
    num_rows: int,
    width: int,
    reference: Reference | None,
) -> memoryview:
    """Decode rows; the receiver knows from the frame what they must be.

    Args:
        data: What `encode` returned.
        dtype: What the rows consist of.
        num_rows: N.
        width: D.
        reference: As the sender had it; not needed for payloads that use none.

    Returns:
        The rows' bytes, [N, D] packed; a view of `data` if they were stored raw.

    Raises:
        FrameCorrupt: Damaged, of another shape, type or version, or made with another reference.
    """
    view = memoryview(data)
    if len(view) < _HEADER.size:
        raise FrameCorrupt("The peer sent a compressed payload that is cut short.")
    version, method, checksum = _HEADER.unpack_from(view)
    if version != VERSION:
        raise FrameCorrupt(
            f"The peer compresses in version {version} of the format, we know {VERSION}; "
            "update the older of the two."
        )
    body = view[_HEADER.size :]
    num_bytes = num_rows * width * dtype.num_bytes
    if method == Method.RAW:
        decoded = body
    elif method == Method.LANES and num_bytes:
        decoded = _decode_lanes(body, dtype, num_rows, width, reference)
    else:
        raise FrameCorrupt("The peer sent a payload that is compressed in an unknown way.")
    if len(decoded) != num_bytes or _checksum(decoded, dtype, width) != checksum:
        raise FrameCorrupt("The peer sent a compressed payload whose checksum does not match.")
    return decoded


def named_reference(data: bytes | memoryview) -> int:
    """Hash of the reference that an encoded payload was made with; 0 for none."""
    if len(data) < _HEADER.size + _LANES_HEADER.size or data[1] != Method.LANES:
        return 0
    return int(_LANES_HEADER.unpack_from(data, _HEADER.size)[0])


def _encode_lanes(
    payload: bytes | memoryview, dtype: ElementType, width: int, reference: Reference | None
) -> list[bytes | memoryview]:
    patterns = np.frombuffer(payload, dtype.patterns).reshape(-1, width)
    repeated = repeats.find(patterns)
    index = b""
    if repeated is not None:
        patterns, index = patterns[repeated.kept], repeated.index
    shifts = None if reference is None else reference.shifts
    high, *low = lanes.split(patterns, dtype, shifts, _scratch.take(patterns.nbytes))
    coded = [entropy.code_high_lane(high), *map(entropy.code_low_lane, low)]
    digest = 0 if reference is None else reference.digest
    return [
        _LANES_HEADER.pack(digest, len(patterns), len(index)),
        _LANE_SIZES[dtype].pack(*map(len, coded)),
        index,
        *coded,
    ]


def _decode_lanes(
    body: memoryview, dtype: ElementType, num_rows: int, width: int, reference: Reference | None
) -> memoryview:
    sizes_struct = _LANE_SIZES[dtype]
    at = _LANES_HEADER.size + sizes_struct.size
    if len(body) < at:
        raise FrameCorrupt("The peer sent a compressed payload that is cut short.")
    digest, num_kept, index_bytes = _LANES_HEADER.unpack_from(body)
    sizes = sizes_struct.unpack_from(body, _LANES_HEADER.size)
    if len(body) != at + index_bytes + sum(sizes) or not 0 < num_kept <= num_rows:
        raise FrameCorrupt("The peer sent a compressed payload whose sizes do not add up.")
    if bool(index_bytes) != (num_kept < num_rows):
        raise FrameCorrupt("The peer sent a compressed payload whose row index is damaged.")
    shifts = None
    if digest:
        if reference is None or (reference.digest, reference.width) != (digest, width):
            raise FrameCorrupt(
                "The peer compressed its payload with a reference that this node does not have."
            )
        shifts = reference.shifts
    ends = np.cumsum([at, index_bytes, *sizes]).tolist()
    index, *coded = (body[start:end] for start, end in pairwise(ends))
    sources = repeats.read_sources(index, num_rows, num_kept) if index_bytes else None
    parts = [
        np.frombuffer(entropy.decode(lane, num_kept * width), np.uint8).reshape(num_kept, width)
        for lane in coded
    ]
    patterns = lanes.join(parts, dtype, shifts)
    if sources is not None:
        patterns = patterns[sources]
    return patterns.reshape(-1).view(np.uint8).data


def _checksum(payload: bytes | memoryview, dtype: ElementType, width: int) -> int:
    seed = xxhash.xxh3_64_intdigest(_SEED.pack(dtype, width, len(payload)))
    return xxhash.xxh3_64_intdigest(payload, seed=seed)
