from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.codec.lanes import ElementType
from engine.codec.payload import MAX_EXPANSION_BYTES, decode, encode
from engine.codec.reference import Reference, choose_reference, learn_reference
from engine.core.errors import FrameCorrupt

dtypes = st.sampled_from(list(ElementType))
seeds = st.integers(0, 2**32 - 1)
KINDS = ("noise", "residual", "few values", "constant", "repeated rows", "special", "integers")


def special_patterns(dtype: ElementType) -> np.ndarray:
    """Zeros, infinities, quiet and signalling NaNs with payloads, denormals; both signs."""
    bits = 8 * dtype.num_bytes
    mantissa = 10 if dtype is ElementType.FLOAT16 else bits - 9
    infinity = (1 << (bits - 1)) - (1 << mantissa)
    quiet = infinity | 1 << (mantissa - 1)
    positive = [
        0,
        1,
        2,
        (1 << mantissa) - 1,
        infinity,
        infinity | 1,
        quiet,
        quiet | 5,
        infinity - 1,
    ]
    return np.array([*positive, *(p | 1 << (bits - 1) for p in positive)], dtype.patterns)


def patterns_of(
    kind: str, dtype: ElementType, shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    num_rows, width = shape
    if kind == "noise":
        return rng.integers(0, 256**dtype.num_bytes, shape, dtype.patterns.type)
    if kind == "residual":
        rows = rng.normal(0, rng.lognormal(0, 2, width), shape).astype(np.float32)
        if dtype is ElementType.BFLOAT16:
            return (rows.view(np.uint32) >> 16).astype(np.uint16)
        kept = rows if dtype is ElementType.FLOAT32 else rows.clip(-6e4, 6e4).astype(np.float16)
        return kept.view(dtype.patterns)
    if kind == "few values":
        return rng.choice(rng.integers(0, 256**dtype.num_bytes, 3, dtype.patterns.type), shape)
    if kind == "constant":
        return np.full(shape, rng.integers(0, 256**dtype.num_bytes), dtype.patterns)
    if kind == "special":
        return rng.choice(special_patterns(dtype), shape)
    if kind == "integers":
        return np.arange(num_rows * width, dtype=dtype.patterns).reshape(shape)
    distinct = patterns_of("residual", dtype, (max(1, num_rows // 4), width), rng)
    return distinct[rng.integers(0, len(distinct), num_rows)]


@st.composite
def payloads(draw):
    """Type, shape and rows."""
    dtype = draw(dtypes)
    shape = (draw(st.integers(0, 40)), draw(st.integers(1, 80)))
    rng = np.random.default_rng(draw(seeds))
    return dtype, patterns_of(draw(st.sampled_from(KINDS)), dtype, shape, rng)


@st.composite
def references(draw, dtype, width):
    rng = np.random.default_rng(draw(seeds))
    shifts = rng.integers(0, 256, width, np.uint8)
    return draw(st.sampled_from([None, Reference(dtype, shifts)]))


@settings(max_examples=300)
@given(payloads(), st.data())
def test_rows_come_back_bit_for_bit_and_never_grow_beyond_the_promise(payload, data):
    dtype, rows = payload
    reference = data.draw(references(dtype, rows.shape[1]))
    raw = rows.tobytes()
    encoded = encode(raw, dtype, rows.shape[1], reference)
    assert len(encoded) <= len(raw) + MAX_EXPANSION_BYTES
    assert decode(encoded, dtype, *rows.shape, reference) == raw


@given(payloads())
def test_rows_come_back_with_the_reference_learned_from_them(payload):
    dtype, rows = payload
    raw, width = rows.tobytes(), rows.shape[1]
    if not raw:
        return
    reference = learn_reference(raw, dtype, width)
    for chosen in (reference, choose_reference([reference], raw, dtype, width)):
        assert decode(encode(raw, dtype, width, chosen), dtype, *rows.shape, chosen) == raw


@given(payloads(), st.integers(1, 4), st.booleans())
def test_strided_rows_are_encoded_like_their_copies(payload, step, backwards):
    dtype, rows = payload
    view = rows[:: -step if backwards else step, ::step]
    width = view.shape[1]
    encoded = (
        encode(memoryview(np.ascontiguousarray(view)).cast("B"), dtype, width, None)
        if (view.size)
        else encode(b"", dtype, width, None)
    )
    assert decode(encoded, dtype, *view.shape, None) == view.tobytes()


@given(dtypes, st.integers(0, 9), st.booleans())
def test_empty_payloads_pass(dtype, size, wide):
    num_rows, width = (0, size) if wide else (size, 0)
    encoded = encode(b"", dtype, width, None)
    assert len(encoded) <= MAX_EXPANSION_BYTES
    assert decode(encoded, dtype, num_rows, width, None) == b""


def decoded_or_refused(encoded, dtype, shape, reference) -> bytes | None:
    try:
        return bytes(decode(encoded, dtype, *shape, reference))
    except FrameCorrupt:
        return None


@settings(max_examples=400)
@given(payloads(), st.data())
def test_changed_byte_is_refused_or_changes_nothing(payload, data):
    dtype, rows = payload
    reference = data.draw(references(dtype, rows.shape[1]))
    encoded = bytearray(encode(rows.tobytes(), dtype, rows.shape[1], reference))
    # Headers are where the harm is: half of all changes go there.
    last = len(encoded) - 1
    at = data.draw(st.one_of(st.integers(0, min(60, last)), st.integers(0, last)))
    encoded[at] ^= data.draw(st.integers(1, 255))
    assert decoded_or_refused(encoded, dtype, rows.shape, reference) in (None, rows.tobytes())


@given(payloads(), st.data())
def test_cut_or_extended_payload_is_refused(payload, data):
    dtype, rows = payload
    encoded = encode(rows.tobytes(), dtype, rows.shape[1], None)
    kept = data.draw(st.integers(0, len(encoded) - 1))
    for wrong in (encoded[:kept], encoded + data.draw(st.binary(min_size=1, max_size=20))):
        assert decoded_or_refused(wrong, dtype, rows.shape, None) is None


@given(payloads(), st.data())
def test_wrong_reference_is_refused_or_not_needed(payload, data):
    dtype, rows = payload
    width = rows.shape[1]
    right, wrong = data.draw(references(dtype, width)), data.draw(references(dtype, width))
    encoded = encode(rows.tobytes(), dtype, width, right)
    assert decoded_or_refused(encoded, dtype, rows.shape, wrong) in (None, rows.tobytes())


@given(payloads(), st.integers(0, 50), st.integers(1, 90), dtypes)
def test_payload_of_another_shape_or_type_is_refused(payload, num_rows, width, other):
    dtype, rows = payload
    encoded = encode(rows.tobytes(), dtype, rows.shape[1], None)
    if (other, num_rows, width) == (dtype, *rows.shape):
        return
    assert decoded_or_refused(encoded, other, (num_rows, width), None) is None


@given(st.binary(max_size=300), dtypes, st.integers(0, 9), st.integers(0, 9))
@example(b"", ElementType.FLOAT16, 0, 0)
def test_random_bytes_are_never_hidden_states(data, dtype, num_rows, width):
    for method in (b"", b"\x01\x00", b"\x01\x01"):
        with pytest.raises(FrameCorrupt):
            decode(method + data, dtype, num_rows, width, None)
