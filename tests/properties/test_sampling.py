from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.core.sampling_params import SamplingParams
from engine.sampling.noise import gumbel_noise
from engine.sampling.sample import restrict

EDGE = 1e-5
"""Two float32 ways of summing may disagree on a token whose mass ends this close to the limit."""

keys = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
logits = arrays(np.float32, st.integers(1, 40), elements=st.floats(-30, 30, width=32))


@settings(deadline=None)
@given(keys, st.integers(1, 300))
def test_the_same_key_gives_the_same_finite_noise(key: tuple[int, int, int], size: int) -> None:
    noise = gumbel_noise(*key, size)
    assert np.isfinite(noise).all()
    assert np.array_equal(noise, gumbel_noise(*key, size))
    assert np.array_equal(noise, gumbel_noise(*key, size + 7)[:size])


@settings(deadline=None)
@given(keys, keys)
def test_other_keys_give_other_noise(a: tuple[int, int, int], b: tuple[int, int, int]) -> None:
    same = np.array_equal(gumbel_noise(*a, 8), gumbel_noise(*b, 8))
    assert same == (a == b)


@settings(deadline=None)
@given(keys, st.integers(1, 1000))
def test_positions_do_not_overlap(key: tuple[int, int, int], step: int) -> None:
    here = gumbel_noise(*key, 400)
    there = gumbel_noise(key[0], key[1], key[2] + step, 400)
    assert not np.isin(here, there).sum() > 2  # float32 values may meet by chance, runs may not


def _softmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def _kept(scores: npt.NDArray[np.float32], params: SamplingParams) -> set[int]:
    return set(np.flatnonzero(np.isfinite(restrict(scores, params))).tolist())


@settings(deadline=None)
@given(logits, st.integers(0, 45))
def test_top_k_keeps_the_k_best_and_their_ties(scores: npt.NDArray[np.float32], k: int) -> None:
    kept = _kept(scores, SamplingParams(temperature=1.0, top_k=k))
    shifted = scores - scores.max()
    better = [int((shifted > score).sum()) for score in shifted]
    assert kept == {i for i in range(len(scores)) if k == 0 or better[i] < k}


@settings(deadline=None)
@given(logits, st.floats(0.01, 1.0), st.floats(0.1, 3.0))
def test_top_p_keeps_the_smallest_set_that_reaches_p(
    scores: npt.NDArray[np.float32], top_p: float, temperature: float
) -> None:
    kept = _kept(scores, SamplingParams(temperature=temperature, top_p=top_p))
    p = _softmax(scores.astype(np.float64) / temperature)
    shifted = (scores - scores.max()) / np.float32(temperature)
    for token in range(len(p)):
        before = p[shifted > shifted[token]].sum()
        if before < top_p - EDGE:
            assert token in kept
        if before > top_p + EDGE:
            assert token not in kept
    assert int(scores.argmax()) in kept


@settings(deadline=None)
@given(logits, st.floats(0.001, 1.0))
def test_min_p_keeps_what_is_near_enough_to_the_best(
    scores: npt.NDArray[np.float32], min_p: float
) -> None:
    kept = _kept(scores, SamplingParams(temperature=1.0, min_p=min_p))
    p = _softmax(scores.astype(np.float64))
    for token in range(len(p)):
        if p[token] > min_p * p.max() * (1 + EDGE):
            assert token in kept
        if p[token] < min_p * p.max() * (1 - EDGE):
            assert token not in kept
    assert int(scores.argmax()) in kept


@settings(deadline=None)
@given(logits, st.integers(1, 10), st.floats(0.05, 0.99), st.floats(0.01, 0.5))
def test_each_filter_sees_what_the_one_before_left(
    scores: npt.NDArray[np.float32], k: int, top_p: float, min_p: float
) -> None:
    all_at_once = SamplingParams(temperature=1.0, top_k=k, top_p=top_p, min_p=min_p)
    step = restrict(scores, SamplingParams(temperature=1.0, top_k=k))
    step = restrict(step, SamplingParams(temperature=1.0, top_p=top_p))
    step = restrict(step, SamplingParams(temperature=1.0, min_p=min_p))
    assert np.array_equal(restrict(scores, all_at_once), step)
