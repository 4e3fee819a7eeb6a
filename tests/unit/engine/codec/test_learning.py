from __future__ import annotations

import numpy as np

from engine.codec.lanes import ElementType
from engine.codec.learning import ReferenceLearner
from engine.codec.payload import encode
from engine.codec.reference import MAX_KNOWN_REFERENCES, Reference

WIDTH, BF16 = 128, ElementType.BFLOAT16


def hidden_states(seed: int, num_rows: int, boundary: int = 0) -> bytes:
    sizes = np.random.default_rng(boundary).lognormal(0, 2, WIDTH)
    rows = np.random.default_rng(seed).normal(0, sizes, (num_rows, WIDTH)).astype(np.float32)
    return (rows.view(np.uint32) >> 16).astype("<u2").tobytes()


def run(learner: ReferenceLearner, rows: int, *, boundary: int = 0) -> None:
    """Let so many rows pass, in frames of 32."""
    for seed in range(rows // 32):
        learner.take(hidden_states(seed, 32, boundary))
        if learner.has_sample:
            learner.review()


def share(reference: Reference | None, boundary: int) -> float:
    rows = hidden_states(12345, 64, boundary)
    return len(encode(rows, BF16, WIDTH, reference)) / len(rows)


def test_first_frames_are_enough_for_a_reference():
    learner = ReferenceLearner(BF16, WIDTH)
    assert learner.current is None
    run(learner, 64)
    assert share(learner.current, 0) < 0.95 * share(None, 0)


def test_unchanged_traffic_is_not_learned_again_and_again():
    learner = ReferenceLearner(BF16, WIDTH)
    run(learner, 640)
    settled = learner.current
    run(learner, 60_000)
    assert learner.current is settled


def test_rows_of_another_boundary_get_a_reference_of_their_own_and_the_old_one_is_found_again():
    learner = ReferenceLearner(BF16, WIDTH)
    run(learner, 20_000)
    first = learner.current
    run(learner, 20_000, boundary=1)
    second = learner.current
    assert second is not first
    assert share(second, 1) < 0.95 * share(first, 1)
    run(learner, 20_000)
    assert learner.current is first


def test_few_references_are_remembered_whatever_comes():
    learner = ReferenceLearner(BF16, WIDTH)
    for boundary in range(12):
        run(learner, 17_000, boundary=boundary)
    assert len(learner._known) <= MAX_KNOWN_REFERENCES


def test_rows_that_no_reference_makes_smaller_get_none():
    learner = ReferenceLearner(BF16, WIDTH)
    learner.take(bytes(2 * WIDTH * 64))
    learner.review()
    assert learner.current is None


def test_very_wide_rows_are_sampled_within_a_few_megabytes():
    learner = ReferenceLearner(ElementType.FLOAT32, 1 << 16)
    row = np.random.default_rng(0).normal(size=1 << 16).astype("<f4").tobytes()
    for _ in range(40):
        learner.take(row * 4)
    assert len(learner._sample) <= 17 << 20
