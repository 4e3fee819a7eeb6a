"""The frame: what links between nodes carry.

A frame is a fixed header and a body. The body of a *row frame* (`STEP`, `TOKENS`, `EXPECT`) is a row table,
token ids and a payload, all packed: rows of different sessions lie one after another, never
padded, and the table says where each begins. The body of every other kind is the payload alone,
a message of `engine.protocol.messages`.

```
header, 36 bytes, little endian
  2s magic "SH" | B version | B kind | B dtype | B codec | H rows | I tokens | I width |
  I payload bytes | I draft bytes | B bytes of an id | Q xxh3 of all before and of the body |
  B more follows | 2s reserved
```
Rows, ids, and shapes and weights of drafts are packed by `engine.protocol.rows`. Everything is
checked against the header's own numbers and the receiver's limits before the body is read, so a
stranger cannot make us allocate more than `FrameLimits` allows, neither for what comes nor for what it
decodes to.

Hidden states are raw in every `Frame` that handlers see; links encode them just before the wire
and decode them just after it (`engine.swarm.link_codec`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt
import xxhash

from engine.core.errors import FrameCorrupt, LocalProtocolError
from engine.protocol.rows import (
    ID_BYTES,
    MAX_DRAFTED,
    ROW_BYTES,
    Row,
    id_bytes_of,
    pack_ids,
    pack_rows,
    unpack_ids,
    unpack_rows,
)

GREETING_PROTOCOL = 1
"""Greetings travel in this version for ever, whatever is spoken after them: so any two nodes can tell
one another which of them must be updated."""
MAGIC = b"SH"
_FIELDS = struct.Struct("<2sBBBBHIIIIB")
_CHECKSUM = struct.Struct("<Q?2x")
_HEADER = struct.Struct("<2sBBBBHIIIIBQ?2x")
HEADER_BYTES = _HEADER.size


class Kind(IntEnum):
    """What a frame is for."""

    HELLO = 1
    WELCOME = 2
    PING = 3
    PONG = 4
    OPEN = 10
    OPENED = 11
    KEEP = 12
    CLOSE = 13
    FAILED = 14
    NOTICE = 15
    LEAD = 16
    STEP = 20
    TOKENS = 21
    REFERENCE = 22
    EXPECT = 23
    STATS = 30
    STATS_REPLY = 31
    HOLD = 40
    HELD = 41
    ROUTE = 42
    ROUTED = 43
    REPLAY = 44
    REPLAYED = 45
    PROBE = 50
    PROBED = 51
    FILLER = 52


ROW_KINDS = frozenset({Kind.STEP, Kind.TOKENS, Kind.EXPECT})


class Dtype(IntEnum):
    """Element type of a row frame's payload."""

    NONE = 0
    FLOAT32 = 1
    BFLOAT16 = 2
    FLOAT16 = 3


ELEMENT_BYTES = {Dtype.NONE: 0, Dtype.FLOAT32: 4, Dtype.BFLOAT16: 2, Dtype.FLOAT16: 2}


class Codec(IntEnum):
    """How hidden states are encoded on the wire."""

    RAW = 0
    LOSSLESS = 1
    """`engine.codec.payload`, bit for bit."""
    ROWS8 = 2
    """`engine.codec.lossy`, each row by itself; only of sessions that allow it."""
    BLOCKS8 = 3
    """`engine.codec.lossy`, blocks of 4096; only of sessions that allow it."""


LOSSY_CODECS = frozenset({Codec.ROWS8, Codec.BLOCKS8})
MAX_EXPANSION_BYTES = 16
"""No encoded payload is longer than what it encodes by more than this."""
_MAX_SHRINKAGE = 64
"""A batch of equal rows is encoded in a fraction of its size, but what claims to be millions of them
would cost its receiver far more than its sender."""
_ANY_SHRINKAGE_BYTES = 4 << 20
"""What decodes to no more than this may come in as few bytes as it likes."""


@dataclass(frozen=True)
class Frame:
    """One message between nodes, parsed.

    `ids` is `[N]` int32 and `payload` raw bytes: hidden states `[N, width]` of `dtype` in STEP
    frames, an optional JSON list (one entry of log-probabilities per row) in TOKENS frames, a
    message in all others. `codec` is how hidden states came; in a frame to be sent, which lossy
    codec they may travel by, if any.
    """

    kind: Kind
    payload: bytes | memoryview = b""
    rows: tuple[Row, ...] = ()
    ids: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    dtype: Dtype = Dtype.NONE
    width: int = 0
    codec: Codec = Codec.RAW

    @cached_property
    def id_bytes(self) -> int:
        """What each id takes on the wire."""
        return id_bytes_of(self.ids)

    @cached_property
    def num_bytes(self) -> int:
        """Size on the wire."""
        drafts = sum(row.draft_bytes for row in self.rows)
        ids = len(self.ids) * self.id_bytes
        return HEADER_BYTES + len(self.rows) * ROW_BYTES + ids + drafts + len(self.payload)


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """The most that a receiver will read."""

    max_rows: int = 4096
    max_tokens: int = 1 << 20
    max_payload_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """A header that has passed `read_header`; says how much more to read."""

    protocol: int
    kind: Kind
    dtype: Dtype
    codec: Codec
    num_rows: int
    num_tokens: int
    width: int
    payload_bytes: int
    draft_bytes: int
    id_bytes: int
    checksum: int
    more_follows: bool
    """A hint, not covered by the checksum: the sender had another frame ready when this one left."""

    @property
    def body_bytes(self) -> int:
        """Bytes that follow the header."""
        ids = self.num_tokens * self.id_bytes
        return self.num_rows * ROW_BYTES + ids + self.draft_bytes + self.payload_bytes


def check(frame: Frame) -> None:
    """Find our own mistakes before a frame is queued.

    Raises:
        LocalProtocolError: The frame does not hold together.
    """
    if sum(row.count for row in frame.rows) != len(frame.ids) or any(
        max(len(row.parents), len(row.kept)) > MAX_DRAFTED for row in frame.rows
    ):
        raise LocalProtocolError("A frame's rows and ids do not match; this is a bug, report it.")


def is_too_dense(raw_bytes: int, encoded_bytes: int) -> bool:
    """Whether no receiver would decode so much from so little."""
    return raw_bytes > max(_ANY_SHRINKAGE_BYTES, _MAX_SHRINKAGE * encoded_bytes)


def encode(
    frame: Frame, *, more_follows: bool = False, protocol: int = GREETING_PROTOCOL
) -> list[bytes | memoryview]:
    """Turn a frame into buffers to write one after another (no copy of the payload).

    Args:
        frame: What to send.
        more_follows: Whether another one is ready to follow it at once.
        protocol: The version that this link speaks.

    Raises:
        LocalProtocolError: The frame does not hold together.
    """
    check(frame)
    table, drafts = pack_rows(frame.rows)
    front = table + pack_ids(frame.ids, frame.id_bytes) + drafts
    sizes = (
        len(frame.rows), len(frame.ids), frame.width, len(frame.payload), len(drafts),
        frame.id_bytes,
    )  # fmt: skip
    fields = _pack_fields(protocol, frame.kind, frame.dtype, frame.codec, sizes)
    checksum = xxhash.xxh3_64(fields + front)
    checksum.update(frame.payload)
    header = fields + _CHECKSUM.pack(checksum.intdigest(), more_follows)
    return [header + front, frame.payload] if len(frame.payload) else [header + front]


def read_header(
    data: bytes | bytearray, limits: FrameLimits, protocol: int = GREETING_PROTOCOL
) -> FrameHeader:
    """Check a header before anything else is read or allocated.

    Args:
        data: Exactly `HEADER_BYTES` bytes.
        limits: The most that we accept.
        protocol: The version that this link speaks.

    Raises:
        FrameCorrupt: Not a frame, another version, or more than the limits allow.
    """
    (
        magic, version, kind, dtype, codec, rows, tokens, width, payload, drafts, id_bytes,
        checksum, more_follows,
    ) = _HEADER.unpack(data)  # fmt: skip
    if magic != MAGIC:
        raise FrameCorrupt("The peer sent bytes that are not a Shoal frame.")
    if version != protocol:
        raise FrameCorrupt(
            f"The peer sent a frame in version {version} of the protocol where {protocol} was agreed."
        )
    try:
        kind, dtype, codec = Kind(kind), Dtype(dtype), Codec(codec)
    except ValueError as error:
        raise FrameCorrupt(f"The peer sent a frame with an unknown field: {error}.") from error
    if rows > limits.max_rows or tokens > limits.max_tokens:
        raise FrameCorrupt(f"The peer sent a frame of {rows} rows and {tokens} tokens: too large.")
    if payload + drafts > limits.max_payload_bytes:
        raise FrameCorrupt(f"The peer sent a frame of {payload + drafts} bytes: too large.")
    if id_bytes not in ID_BYTES:
        raise FrameCorrupt("The peer sent a frame whose ids do not fit its shape.")
    if kind not in ROW_KINDS and (rows or tokens or width or drafts):
        raise FrameCorrupt("The peer sent a message frame with rows in it.")
    raw_bytes = tokens * width * ELEMENT_BYTES[dtype]
    if raw_bytes > limits.max_payload_bytes or (codec and is_too_dense(raw_bytes, payload)):
        raise FrameCorrupt(f"The peer sent a frame that unpacks to {raw_bytes} bytes: too large.")
    if codec is not Codec.RAW:
        fits = kind is Kind.STEP and 0 < payload <= raw_bytes + MAX_EXPANSION_BYTES and raw_bytes
    else:
        fits = not dtype or payload == raw_bytes
    if not fits:
        raise FrameCorrupt("The peer sent a frame whose payload does not fit its shape.")
    return FrameHeader(
        protocol, kind, dtype, codec, rows, tokens, width, payload, drafts, id_bytes, checksum,
        more_follows,
    )  # fmt: skip


def decode(header: FrameHeader, body: bytes | memoryview) -> Frame:
    """Parse a body of `header.body_bytes` bytes; the payload is a view of it.

    Raises:
        FrameCorrupt: Checksum, flags or row counts are wrong.
    """
    sizes = (
        header.num_rows, header.num_tokens, header.width, header.payload_bytes,
        header.draft_bytes, header.id_bytes,
    )  # fmt: skip
    fields = _pack_fields(header.protocol, header.kind, header.dtype, header.codec, sizes)
    checksum = xxhash.xxh3_64(fields)
    checksum.update(body)
    if len(body) != header.body_bytes or checksum.intdigest() != header.checksum:
        raise FrameCorrupt("The peer sent a frame whose checksum does not match.")
    ids_at = header.num_rows * ROW_BYTES
    drafts_at = ids_at + header.num_tokens * header.id_bytes
    payload_at = drafts_at + header.draft_bytes
    front, payload = bytes(body[:payload_at]), memoryview(body)[payload_at:]
    rows = unpack_rows(front[:ids_at], front[drafts_at:])
    if sum(row.count for row in rows) != header.num_tokens:
        raise FrameCorrupt("The peer sent a frame whose rows do not add up to its tokens.")
    ids = unpack_ids(front[ids_at:drafts_at], header.id_bytes)
    return Frame(header.kind, payload, rows, ids, header.dtype, header.width, header.codec)


def _pack_fields(
    protocol: int, kind: Kind, dtype: Dtype, codec: Codec, sizes: tuple[int, ...]
) -> bytes:
    return _FIELDS.pack(MAGIC, protocol, kind, dtype, codec, *sizes)


def split_payload(frame: Frame) -> Sequence[memoryview]:
    """The payload's bytes of each row of a frame with hidden states, in order."""
    row_bytes = frame.width * ELEMENT_BYTES[frame.dtype]
    view, at, parts = memoryview(frame.payload), 0, []
    for row in frame.rows:
        parts.append(view[at : at + row.count * row_bytes])
        at += row.count * row_bytes
    return parts
