from __future__ import annotations

import numpy as np
import pytest

from engine.codec import lossy
from engine.codec.lanes import ElementType
from engine.codec.lossy import Layout
from engine.codec.reference import learn_reference
from engine.core.errors import FrameCorrupt
from engine.protocol.frames import Codec

WIDTH, VOCABULARY = 256, 500
F16 = ElementType.FLOAT16


def hidden_states(seed: int, num_rows: int) -> np.ndarray:
    """float32 rows as a residual stream's: channels of different sizes, a few of them huge."""
    sizes = np.random.default_rng(0).lognormal(0, 1, WIDTH)
    sizes[:3] *= 100
    return np.random.default_rng(seed).normal(0, sizes, (num_rows, WIDTH)).astype(np.float16)


def through(rows: np.ndarray, layout: Layout, *, with_reference: bool) -> tuple[np.ndarray, float]:
    """The rows as they come out, and how many bytes an element took."""
    learned = learn_reference(hidden_states(1, 200).tobytes(), F16, WIDTH)
    reference = learned if with_reference else None
    data = lossy.encode(rows.tobytes(), F16, WIDTH, layout, reference)
    assert data is not None
    decoded = lossy.decode(data, F16, *rows.shape, layout, reference)
    return np.frombuffer(decoded, np.float16).reshape(rows.shape), len(data) / rows.size


def divergence(rows: np.ndarray, rounded: np.ndarray) -> float:
    """Mean KL divergence of next-token distributions that a norm and a random head make of both."""
    scales = np.sqrt((hidden_states(1, 200).astype(np.float64) ** 2).mean(axis=0))
    head = (
        np.random.default_rng(5).normal(0, 2 / np.sqrt(WIDTH), (WIDTH, VOCABULARY))
        / scales[:, None]
    )

    def log_probabilities(states: np.ndarray) -> np.ndarray:
        logits = states.astype(np.float64) @ head
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    p, q = log_probabilities(rows), log_probabilities(rounded)
    return float((np.exp(p) * (p - q)).sum(axis=1).mean())


def test_rounded_rows_take_under_half_the_bytes_and_keep_their_values_to_a_few_percent():
    rows = hidden_states(2, 64)
    for layout, with_reference in (
        (Layout.ROWS, True),
        (Layout.ROWS, False),
        (Layout.BLOCKS, False),
    ):
        rounded, bytes_per_element = through(rows, layout, with_reference=with_reference)
        assert bytes_per_element < 1.0
        error = np.linalg.norm(rounded.astype(np.float64) - rows) / np.linalg.norm(
            rows.astype(np.float64)
        )
        assert error < 0.03


def test_normalised_channels_leave_the_next_token_nearest_to_what_it_was():
    rows = hidden_states(2, 64)
    channels, plain, blocks = (
        divergence(rows, through(rows, layout, with_reference=with_reference)[0])
        for layout, with_reference in (
            (Layout.ROWS, True),
            (Layout.ROWS, False),
            (Layout.BLOCKS, False),
        )
    )
    assert channels < plain < 1.5 * blocks
    assert channels < 2e-3
    assert blocks < 2e-2


def test_layouts_have_the_numbers_of_the_frames():
    assert (Layout.ROWS, Layout.BLOCKS) == (Codec.ROWS8, Codec.BLOCKS8)


def test_rows_too_small_for_their_scales_are_not_encoded():
    rows = np.ones((3, 2), np.float16)
    assert lossy.encode(rows.tobytes(), F16, 2, Layout.ROWS, None) is None
    assert lossy.encode(b"", F16, 2, Layout.ROWS, None) is None


def test_other_version_is_told_apart_from_damage():
    data = lossy.encode(hidden_states(1, 4).tobytes(), F16, WIDTH, Layout.ROWS, None)
    assert data is not None
    with pytest.raises(FrameCorrupt, match="version 9"):
        lossy.decode(b"\x09" + data[1:], F16, 4, WIDTH, Layout.ROWS, None)
