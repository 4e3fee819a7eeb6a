from __future__ import annotations

import struct

import numpy as np
import pytest
import zstandard

from engine.codec import lanes
from engine.codec.lanes import ElementType
from engine.codec.payload import MAX_EXPANSION_BYTES, VERSION, decode, encode
from engine.codec.reference import Reference, choose_reference, learn_reference
from engine.core.errors import FrameCorrupt, LocalProtocolError
from engine.protocol.frames import Dtype

WIDTH = 256


def hidden_states(seed: int, num_rows: int, dtype: ElementType, scale_seed: int = 0) -> np.ndarray:
    """Bit patterns of rows whose channels differ in size, as a residual stream's do."""
    scales = np.random.default_rng(scale_seed).lognormal(0, 1.5, WIDTH)
    rows = np.random.default_rng(seed).normal(0, scales, (num_rows, WIDTH)).astype(np.float32)
    if dtype is ElementType.BFLOAT16:
        return (rows.view(np.uint32) >> 16).astype(np.uint16)
    if dtype is ElementType.FLOAT16:
        return rows.astype(np.float16).view(np.uint16)
    return rows.view(np.uint32)


def encoded_share(rows: np.ndarray, dtype: ElementType, reference: Reference | None) -> float:
    return len(encode(rows.tobytes(), dtype, WIDTH, reference)) / rows.nbytes


@pytest.mark.parametrize("dtype", list(ElementType))
def test_reference_learned_from_earlier_rows_makes_later_ones_smaller(dtype):
    reference = learn_reference(hidden_states(1, 200, dtype).tobytes(), dtype, WIDTH)
    later = hidden_states(2, 64, dtype)
    assert encoded_share(later, dtype, reference) < encoded_share(later, dtype, None) < 1


@pytest.mark.parametrize("dtype", list(ElementType))
def test_the_helpful_reference_is_chosen_and_none_when_all_harm(dtype):
    same, other = (
        learn_reference(hidden_states(1, 200, dtype, scale_seed).tobytes(), dtype, WIDTH)
        for scale_seed in (0, 1)
    )
    rows = hidden_states(2, 64, dtype).tobytes()
    assert choose_reference([other, same], rows, dtype, WIDTH) is same
    assert choose_reference([other], rows, dtype, WIDTH) is None


def test_references_of_other_shapes_are_passed_over():
    narrow = learn_reference(bytes(64), ElementType.FLOAT16, 8)
    rows = hidden_states(2, 64, ElementType.BFLOAT16).tobytes()
    assert choose_reference([narrow], rows, ElementType.BFLOAT16, WIDTH) is None


def test_repeated_rows_cost_next_to_nothing():
    distinct = hidden_states(1, 10, ElementType.FLOAT16)
    padded = np.concatenate([distinct, np.repeat(distinct[:1], 50, axis=0), distinct])
    once = len(encode(distinct.tobytes(), ElementType.FLOAT16, WIDTH, None))
    encoded = encode(padded.tobytes(), ElementType.FLOAT16, WIDTH, None)
    assert len(encoded) < once + 60
    assert decode(encoded, ElementType.FLOAT16, *padded.shape, None) == padded.tobytes()


def test_float32_that_holds_bfloat16_costs_little_more_than_bfloat16():
    narrow = hidden_states(1, 64, ElementType.BFLOAT16)
    wide = narrow.astype(np.uint32) << 16
    narrow_bytes = len(encode(narrow.tobytes(), ElementType.BFLOAT16, WIDTH, None))
    wide_bytes = len(encode(wide.tobytes(), ElementType.FLOAT32, WIDTH, None))
    assert wide_bytes < 1.1 * narrow_bytes


def test_noise_is_sent_raw():
    noise = np.random.default_rng(0).bytes(50 * WIDTH * 2)
    encoded = encode(noise, ElementType.FLOAT16, WIDTH, None)
    assert len(encoded) <= len(noise) + MAX_EXPANSION_BYTES


def test_decoded_rows_can_be_written_to_when_they_were_compressed():
    rows = hidden_states(1, 16, ElementType.FLOAT16)
    encoded = encode(rows.tobytes(), ElementType.FLOAT16, WIDTH, None)
    assert not decode(encoded, ElementType.FLOAT16, *rows.shape, None).readonly


def test_encoding_is_the_same_every_time():
    rows = hidden_states(1, 500, ElementType.FLOAT16).tobytes()
    first, second = (encode(rows, ElementType.FLOAT16, WIDTH, None) for _ in range(2))
    assert first == second


def test_other_version_is_told_apart_from_damage():
    encoded = bytearray(encode(bytes(4), ElementType.FLOAT16, 2, None))
    encoded[0] = VERSION + 1
    with pytest.raises(FrameCorrupt, match=f"version {VERSION + 1}"):
        decode(encoded, ElementType.FLOAT16, 1, 2, None)


def test_missing_reference_is_told_apart_from_damage():
    rows = hidden_states(1, 64, ElementType.FLOAT16)
    reference = learn_reference(rows.tobytes(), ElementType.FLOAT16, WIDTH)
    encoded = encode(rows.tobytes(), ElementType.FLOAT16, WIDTH, reference)
    for wrong in (None, Reference(ElementType.FLOAT16, reference.shifts + 1)):
        with pytest.raises(FrameCorrupt, match="reference"):
            decode(encoded, ElementType.FLOAT16, *rows.shape, wrong)


def with_lane(lane: bytes) -> bytes:
    """A float16 payload of 8 rows whose high lane is this."""
    sizes = struct.pack("<BBQ QII II".replace(" ", ""), VERSION, 1, 0, 0, 8, 0, len(lane), 2048)
    return sizes + lane + bytes(2048)


def test_lane_that_unpacks_to_gigabytes_is_refused_before_it_does():
    claims = zstandard.ZstdCompressor(level=1).compressobj(size=1 << 40)
    lane = claims.compress(bytes(100)) + claims.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    with pytest.raises(FrameCorrupt, match="size that does not fit"):
        decode(with_lane(lane), ElementType.FLOAT16, 8, WIDTH, None)


def test_lane_that_hides_its_size_is_refused():
    lane = zstandard.ZstdCompressor(level=1, write_content_size=False).compress(bytes(2048))
    with pytest.raises(FrameCorrupt, match="size that does not fit"):
        decode(with_lane(lane), ElementType.FLOAT16, 8, WIDTH, None)


def test_our_own_mistakes_are_not_blamed_on_the_peer():
    reference = Reference(ElementType.FLOAT16, np.zeros(4, np.uint8))
    for payload, width, known in (
        (bytes(7), 2, None),
        (bytes(8), 0, None),
        (bytes(8), 2, reference),
    ):
        with pytest.raises(LocalProtocolError):
            encode(payload, ElementType.FLOAT16, width, known)
    for rows, width in ((b"", 4), (bytes(6), 4), (bytes(8), 0)):
        with pytest.raises(LocalProtocolError):
            learn_reference(rows, ElementType.FLOAT16, width)


def test_infinities_and_nans_do_not_spoil_a_reference():
    rows = hidden_states(1, 100, ElementType.FLOAT16)
    spoiled = rows.copy()
    spoiled[::10] = 0x7E01  # a NaN with a payload
    later = hidden_states(2, 64, ElementType.FLOAT16)
    clean, dirty = (
        encoded_share(
            later, ElementType.FLOAT16, learn_reference(r.tobytes(), ElementType.FLOAT16, WIDTH)
        )
        for r in (rows, spoiled)
    )
    assert dirty < 1.01 * clean


def test_element_types_have_the_numbers_of_the_frames():
    assert {t.name: t.value for t in ElementType} == {
        t.name: t.value for t in Dtype if t is not Dtype.NONE
    }


@pytest.mark.parametrize("dtype", list(ElementType))
def test_chunks_meet_without_a_seam(dtype, monkeypatch):
    rows = hidden_states(1, 33, dtype)
    whole = lanes.split(rows, dtype, None)
    monkeypatch.setattr(lanes, "CHUNK_BYTES", 4 * WIDTH * dtype.num_bytes)
    chunked = lanes.split(rows, dtype, None)
    assert all(np.array_equal(a, b) for a, b in zip(whole, chunked, strict=True))
    assert np.array_equal(lanes.join(chunked, dtype, None), rows)
