from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import FrameCorrupt
from engine.core.generation import DraftMode
from engine.core.ids import SessionId
from engine.protocol.frames import (
    ELEMENT_BYTES,
    HEADER_BYTES,
    MAX_EXPANSION_BYTES,
    ROW_KINDS,
    Codec,
    Dtype,
    Frame,
    FrameLimits,
    Kind,
    decode,
    encode,
    read_header,
    split_payload,
)
from engine.protocol.rows import ROW_BYTES, WEIGHT_BYTES, Row, RowFlags

LIMITS = FrameLimits(max_rows=64, max_tokens=4096, max_payload_bytes=1 << 20)
MODEL_TOKENS = 7
RESERVED = {*range(33, 36)}
"""Header bytes that say nothing of the frame itself."""


@st.composite
def drafts(draw):
    """Parents of a chain, of a tree, or of what is none: that is for the receiver to check."""
    size = draw(st.integers(0, 8))
    chain = tuple(range(-1, size - 1))
    return draw(st.just(chain) | st.tuples(*[st.integers(-1, 254)] * size))


@st.composite
def some_rows(draw):
    parents = draw(drafts())
    flags, mode = RowFlags(draw(st.integers(0, 63))), draw(st.sampled_from(DraftMode))
    distributions = len(parents) if mode is DraftMode.DSD else 0
    singles = len(parents) if mode in (DraftMode.DSSD, DraftMode.DISCO) else 0
    if RowFlags.REFUSED in flags:
        distributions = 1
    dropped = draw(st.integers(0, 12))
    kept = [True] * len(parents) + [False] * dropped
    return Row(
        SessionId(draw(st.integers(0, 2**64 - 1))),
        draw(st.integers(0, 2**32 - 1)),
        len(parents) + draw(st.integers(0 if parents else 1, 9)),
        draw(st.integers(0, 2**16 - 1)),
        flags,
        parents,
        draw(st.integers(0, 255)),
        mode,
        b"w" * WEIGHT_BYTES * (singles + distributions * MODEL_TOKENS),
        tuple(draw(st.permutations(kept))) if dropped else (),
    )


rows = st.lists(some_rows(), max_size=8)


@st.composite
def frames(draw, kinds=tuple(Kind), dtypes=tuple(Dtype)):
    kind = draw(st.sampled_from(kinds))
    if kind not in ROW_KINDS:
        return Frame(kind, draw(st.binary(max_size=500)))
    table = tuple(draw(rows))
    num_tokens = sum(row.count for row in table)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    largest = draw(st.sampled_from([100, 2**16, 2**24, 2**31]))
    ids = rng.integers(-largest if largest == 2**31 else 0, largest, num_tokens).astype(np.int32)
    dtype = draw(st.sampled_from(dtypes))
    width = draw(st.integers(1, 16)) if dtype else 0
    size = num_tokens * width * ELEMENT_BYTES[dtype]
    codec = draw(st.sampled_from(list(Codec))) if kind is Kind.STEP and size else Codec.RAW
    if codec is not Codec.RAW:
        size = draw(st.integers(1, size + MAX_EXPANSION_BYTES))
    payload = rng.bytes(size) if dtype else draw(st.binary(max_size=50))
    return Frame(kind, payload, table, ids, dtype, width, codec)


def on_the_wire(frame: Frame) -> bytes:
    return b"".join(encode(frame))


def read(data: bytes) -> Frame:
    header = read_header(data[:HEADER_BYTES], LIMITS)
    return decode(header, data[HEADER_BYTES:])


def same(one: Frame, other: Frame) -> bool:
    return (
        (one.kind, one.rows, one.dtype, one.width, one.codec)
        == (other.kind, other.rows, other.dtype, other.width, other.codec)
        and np.array_equal(one.ids, other.ids)
        and bytes(one.payload) == bytes(other.payload)
    )


@given(frames())
def test_frame_is_the_same_after_the_wire(frame):
    data = on_the_wire(frame)
    assert len(data) == frame.num_bytes
    assert same(read(data), frame)


@given(frames(tuple(ROW_KINDS), tuple(dtype for dtype in Dtype if dtype)))
def test_rows_get_their_own_bytes_of_the_payload(frame):
    raw_bytes = len(frame.ids) * frame.width * ELEMENT_BYTES[frame.dtype]
    frame = replace(frame, payload=np.random.default_rng(0).bytes(raw_bytes))
    parts = split_payload(frame)
    row_bytes = frame.width * ELEMENT_BYTES[frame.dtype]
    assert [len(part) for part in parts] == [row.count * row_bytes for row in frame.rows]
    assert b"".join(parts) == bytes(frame.payload)


@given(frames(), st.data())
def test_truncated_frame_is_never_taken_for_a_whole_one(frame, data):
    whole = on_the_wire(frame)
    kept = data.draw(st.integers(0, len(whole) - 1))
    if kept < HEADER_BYTES:
        return  # a reader waits for the rest of the header
    with pytest.raises(FrameCorrupt):
        read(whole[:kept])


@settings(max_examples=300)
@given(frames(), st.data())
def test_flipped_bit_is_refused_or_changes_nothing(frame, data):
    whole = bytearray(on_the_wire(frame))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    if at in RESERVED:
        assert same(read(bytes(whole)), frame)
    else:
        with pytest.raises(FrameCorrupt):
            read(bytes(whole))


@given(
    st.sampled_from([codec for codec in Codec if codec is not Codec.RAW]),
    st.sampled_from([dtype for dtype in Dtype if dtype]),
    st.integers(1, LIMITS.max_tokens),
    st.integers(1, 2**32 - 1),
)
def test_frame_that_would_unpack_to_more_than_the_limit_is_refused_by_its_header(
    codec, dtype, num_tokens, width
):
    frame = Frame(Kind.STEP, b"x", (Row(SessionId(1), 0, num_tokens),), dtype=dtype, width=width)
    frame = replace(frame, ids=np.zeros(num_tokens, np.int32), codec=codec)
    header = on_the_wire(frame)[:HEADER_BYTES]
    if num_tokens * width * ELEMENT_BYTES[dtype] <= LIMITS.max_payload_bytes:
        assert read_header(header, LIMITS).codec is codec
    else:
        with pytest.raises(FrameCorrupt, match="unpacks"):
            read_header(header, LIMITS)


@given(
    st.sampled_from([codec for codec in Codec if codec is not Codec.RAW]),
    st.sampled_from([dtype for dtype in Dtype if dtype]),
    st.integers(1, 50),
    st.integers(1, 20),
)
def test_encoded_payload_that_is_longer_than_what_it_encodes_is_refused(
    codec, dtype, num_tokens, width
):
    longest = num_tokens * width * ELEMENT_BYTES[dtype] + MAX_EXPANSION_BYTES
    row, ids = Row(SessionId(1), 0, num_tokens), np.zeros(num_tokens, np.int32)
    frame = Frame(Kind.STEP, bytes(longest), (row,), ids, dtype, width, codec)
    assert same(read(on_the_wire(frame)), frame)
    for size in (0, longest + 1):
        with pytest.raises(FrameCorrupt, match="shape"):
            read(on_the_wire(replace(frame, payload=bytes(size))))


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.STEP])
def test_only_hidden_states_are_encoded(kind):
    with pytest.raises(FrameCorrupt):
        read(on_the_wire(Frame(kind, b"x", codec=Codec.LOSSLESS)))


@given(st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_random_header_is_refused_or_within_limits(data):
    try:
        header = read_header(b"SH\x01" + data[3:], LIMITS)
    except FrameCorrupt:
        return
    most = LIMITS.max_rows * 24 + LIMITS.max_tokens * 4 + LIMITS.max_payload_bytes
    assert header.body_bytes <= most


@given(st.binary(min_size=HEADER_BYTES, max_size=200))
def test_random_bytes_are_never_a_frame(data):
    with pytest.raises(FrameCorrupt):
        read(data)


@pytest.mark.parametrize(("largest", "bytes_each"), [(49_151, 2), (151_935, 3), (1 << 24, 4)])
def test_ids_take_as_many_bytes_as_the_largest_needs_and_chains_no_parents(largest, bytes_each):
    ids = np.array([7, largest, 1, 2, 3], np.int32)
    chain = Row(SessionId(1), 0, 5, parents=(-1, 0, 1, 2))
    frame = Frame(Kind.STEP, b"", (chain,), ids)
    assert len(on_the_wire(frame)) == HEADER_BYTES + ROW_BYTES + 5 * bytes_each
    tree = Frame(Kind.STEP, b"", (replace(chain, parents=(-1, 0, 1, 1)),), ids)
    assert len(on_the_wire(tree)) == HEADER_BYTES + ROW_BYTES + 5 * bytes_each + 4
