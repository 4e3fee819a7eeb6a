from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec import lossy
from engine.codec.lanes import ElementType
from engine.codec.lossy import BLOCK_ELEMENTS, Layout
from engine.codec.reference import Reference
from engine.core.errors import FrameCorrupt

dtypes = st.sampled_from(list(ElementType))
layouts = st.sampled_from(list(Layout))
seeds = st.integers(0, 2**32 - 1)

HALF_STEP = 0.9 / 64 / 2
"""Between neighbours of the 256 values where they are widest apart, in the top decade."""
SLACK = 2**-10
"""What rounding the quotient to float16 may add, relative to the quotient."""
ROUNDING = {
    ElementType.FLOAT32: 2**-22,
    ElementType.BFLOAT16: 2**-8,
    ElementType.FLOAT16: 2**-10,
}
"""Relative error of the result's own type, and of the float32 arithmetic before."""


def to_floats(patterns: np.ndarray, dtype: ElementType) -> np.ndarray:
    if dtype is ElementType.BFLOAT16:
        return (patterns.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return patterns.view("<f4" if dtype is ElementType.FLOAT32 else "<f2").astype(np.float64)


def to_patterns(rows: np.ndarray, dtype: ElementType) -> np.ndarray:
    rows = rows.astype(np.float32)
    if dtype is ElementType.FLOAT32:
        return rows.view("<u4")
    if dtype is ElementType.BFLOAT16:
        return (rows.view(np.uint32) >> 16).astype("<u2")
    return rows.clip(-6e4, 6e4).astype("<f2").view("<u2")


@st.composite
def residuals(draw):
    """Type and bit patterns of finite rows whose channels differ in size; some are all zero."""
    dtype = draw(dtypes)
    shape = draw(st.integers(1, 40)), draw(st.integers(24, 300))
    rng = np.random.default_rng(draw(seeds))
    rows = rng.normal(0, rng.lognormal(0, draw(st.floats(0, 3)), shape[1]), shape)
    rows *= draw(st.sampled_from([1e-7, 1, 50]))
    rows[rng.random(shape[0]) < 0.1] = 0
    return dtype, to_patterns(rows, dtype)


@st.composite
def references(draw, dtype, width):
    shifts = np.random.default_rng(draw(seeds)).integers(0, 256, width, np.uint8)
    return draw(st.sampled_from([None, Reference(dtype, shifts)]))


def round_trip(patterns, dtype, layout, reference=None):
    data = lossy.encode(patterns.tobytes(), dtype, patterns.shape[1], layout, reference)
    if data is None:
        return None
    assert len(data) < patterns.nbytes
    known = reference if lossy.named_reference(data) else None
    decoded = lossy.decode(data, dtype, *patterns.shape, layout, known)
    return np.frombuffer(decoded, dtype.patterns).reshape(patterns.shape)


@settings(max_examples=200)
@given(st.data())
def test_error_is_within_half_a_step_of_the_groups_largest_element(data):
    dtype, patterns = data.draw(residuals())
    layout = data.draw(layouts)
    reference = data.draw(references(dtype, patterns.shape[1]))
    decoded = round_trip(patterns, dtype, layout, reference)
    if decoded is None:  # a few elements, which the scales and the header would outweigh
        assert patterns.size < 200 or layout is Layout.ROWS
        return
    before, after = to_floats(patterns, dtype), to_floats(decoded, dtype)
    sizes = np.ones(patterns.shape[1])
    if layout is Layout.ROWS:
        if reference is not None:
            sizes = lossy._channel_sizes(reference, 1).astype(np.float64)
        largest = np.abs(before / sizes).max(axis=1, keepdims=True)
    else:
        flat = np.abs(before).reshape(-1)
        blocks = range(0, len(flat), BLOCK_ELEMENTS)
        largest = np.concatenate(
            [np.full(BLOCK_ELEMENTS, flat[at:][:BLOCK_ELEMENTS].max()) for at in blocks]
        )
        largest = largest[: len(flat)].reshape(before.shape)
    magnitude = np.abs(before)
    tiny = 2.0**-24 if dtype is ElementType.FLOAT16 else 2.0**-132  # a denormal's distance
    bound = largest * sizes * HALF_STEP + magnitude * (SLACK + ROUNDING[dtype]) + tiny
    assert (np.abs(after - before) <= bound).all()


@given(st.data())
def test_small_elements_keep_two_digits_less_than_the_large_ones_at_most(data):
    """The values lie denser towards zero: a tenth of the size has a fifth of the error."""
    dtype, patterns = data.draw(residuals().filter(lambda value: value[1].size > 2000))
    decoded = round_trip(patterns, dtype, Layout.ROWS)
    before, after = to_floats(patterns, dtype), to_floats(decoded, dtype)
    largest = np.abs(before).max(axis=1, keepdims=True)
    share = np.abs(before) / np.where(largest > 0, largest, 1)
    second = (share > 0.011) & (share < 0.099)
    bound = largest * HALF_STEP / 5 + np.abs(before) * (SLACK + ROUNDING[dtype])
    tiny = 2.0**-24 if dtype is ElementType.FLOAT16 else 2.0**-132
    assert (np.abs(after - before) <= bound + tiny)[second].all()


@given(residuals(), layouts, st.sampled_from([np.nan, np.inf, -np.inf]), seeds)
def test_rows_with_a_number_that_is_none_are_left_to_the_exact_codec(residual, layout, odd, seed):
    dtype, patterns = residual
    rng = np.random.default_rng(seed)
    spoiled = patterns.copy()
    with np.errstate(invalid="ignore"):
        marks = {
            ElementType.FLOAT32: np.float32(odd).view("<u4"),
            ElementType.BFLOAT16: np.float32(odd).view("<u4") >> 16,
            ElementType.FLOAT16: np.float16(odd).view("<u2"),
        }
    spoiled[rng.integers(len(spoiled)), rng.integers(spoiled.shape[1])] = marks[dtype]
    assert lossy.encode(spoiled.tobytes(), dtype, spoiled.shape[1], layout, None) is None


@given(st.data())
def test_any_bits_are_encoded_to_finite_ones_or_not_at_all(data):
    dtype, width = data.draw(dtypes), 64
    rng = np.random.default_rng(data.draw(seeds))
    patterns = rng.integers(0, 256**dtype.num_bytes, (8, width), dtype.patterns.type)
    exponents = 0x7C00 if dtype is ElementType.FLOAT16 else 0x7F80
    exponents <<= 8 * dtype.num_bytes - 16
    if data.draw(st.booleans()):  # the largest numbers there are, but none that is infinite
        patterns = np.where(patterns & exponents == exponents, 0, patterns)
    decoded = round_trip(patterns, dtype, data.draw(layouts), data.draw(references(dtype, width)))
    if decoded is not None:
        assert np.isfinite(to_floats(decoded, dtype)).all()


@settings(max_examples=200)
@given(st.data())
def test_damage_is_refused(data):
    dtype, patterns = data.draw(residuals().filter(lambda value: value[1].size > 500))
    layout = data.draw(layouts)
    reference = data.draw(references(dtype, patterns.shape[1]))
    width = patterns.shape[1]
    whole = lossy.encode(patterns.tobytes(), dtype, width, layout, reference)
    known = reference if lossy.named_reference(whole) else None
    spoiled = bytearray(whole)
    at = data.draw(st.integers(0, len(whole) - 1))
    spoiled[at] ^= 1 << data.draw(st.integers(0, 7))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for bad in (bytes(spoiled), cut, whole + b"\0"):
        with pytest.raises(FrameCorrupt):
            lossy.decode(bad, dtype, len(patterns), width, layout, known)
    for shape in ((len(patterns) + 1, width), (len(patterns), width + 1)):
        with pytest.raises(FrameCorrupt):
            lossy.decode(whole, dtype, *shape, layout, known)


@given(residuals().filter(lambda value: value[1].size > 500), st.data())
def test_wrong_or_missing_reference_is_refused(residual, data):
    dtype, patterns = residual
    width = patterns.shape[1]
    shifts = np.random.default_rng(data.draw(seeds)).integers(0, 256, width, np.uint8)
    reference, wrong = Reference(dtype, shifts), Reference(dtype, shifts + 1)
    whole = lossy.encode(patterns.tobytes(), dtype, width, Layout.ROWS, reference)
    for known in (None, wrong):
        with pytest.raises(FrameCorrupt, match="reference"):
            lossy.decode(whole, dtype, len(patterns), width, Layout.ROWS, known)
