"""Sampling is exact: frequencies match the distribution, and the test can tell when they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.special import softmax
from scipy.stats import chisquare

from engine.core.sampling_params import SamplingParams
from engine.sampling.noise import gumbel_noise
from engine.sampling.sample import SampleRequest, restrict, sample

DRAWS = 20_000
REJECT_BELOW = 1e-3
"""A right sampler with other draws fails one time in a thousand; the seeds here are fixed."""
EMPTY = np.empty(0, np.int32)
LOGITS = np.random.default_rng(5).normal(0, 1.5, 24).astype(np.float32)
TEMPERATURE = 0.7
TOP_P = 0.8

Draw = Callable[[int], int]
"""The token picked at a position."""


def expected(temperature: float = 1.0, top_p: float = 1.0) -> npt.NDArray[np.float64]:
    p = softmax(LOGITS.astype(np.float64) / temperature)
    order = np.argsort(-p)
    kept = order[: int(np.searchsorted(np.cumsum(p[order]), top_p)) + 1]
    filtered = np.zeros_like(p)
    filtered[kept] = p[kept]
    return filtered / filtered.sum()


def p_value(draw: Draw, p: npt.NDArray[np.float64]) -> float:
    counts = np.bincount([draw(position) for position in range(DRAWS)], minlength=len(p))
    possible = p * DRAWS >= 5  # what chi-square needs of each cell
    if counts[p == 0].any():
        return 0.0
    observed = np.append(counts[possible], counts[~possible].sum())
    theory = np.append(p[possible], p[~possible].sum()) * DRAWS
    kept = theory > 0
    return float(chisquare(observed[kept], theory[kept]).pvalue)


def sampler(params: SamplingParams) -> Draw:
    logits = torch.from_numpy(LOGITS)[None]
    return lambda position: sample(logits, [SampleRequest(params, position, EMPTY, EMPTY)])[0].id


PLAIN = SamplingParams(temperature=1.0, seed=11)
WARM = SamplingParams(temperature=TEMPERATURE, seed=12)
NUCLEUS = SamplingParams(temperature=1.0, top_p=TOP_P, seed=13)


@pytest.mark.parametrize(
    ("params", "distribution"),
    [
        (PLAIN, expected()),
        (WARM, expected(temperature=TEMPERATURE)),
        (NUCLEUS, expected(top_p=TOP_P)),
    ],
    ids=["plain", "temperature", "top-p"],
)
def test_frequencies_over_positions_match_the_distribution(
    params: SamplingParams, distribution: npt.NDArray[np.float64]
) -> None:
    assert p_value(sampler(params), distribution) > REJECT_BELOW


@pytest.mark.parametrize("field", ["seed", "choice"])
def test_frequencies_over_seeds_and_choices_match_the_distribution(field: str) -> None:
    logits = torch.from_numpy(LOGITS)[None]

    def draw(key: int) -> int:
        request = SampleRequest(replace(PLAIN, **{field: key}), 100, EMPTY, EMPTY)
        return sample(logits, [request])[0].id

    assert p_value(draw, expected()) > REJECT_BELOW


def test_neighbouring_positions_are_independent() -> None:
    draw = sampler(PLAIN)
    p = expected()
    top = np.argsort(-p)[:5]
    index = {int(token): i for i, token in enumerate(top)}
    drawn = [index.get(draw(position), 5) for position in range(DRAWS + 1)]
    counts = np.zeros((6, 6))
    np.add.at(counts, (drawn[:-1], drawn[1:]), 1)
    q = np.append(p[top], 1 - p[top].sum())
    assert chisquare(counts.ravel(), np.outer(q, q).ravel() * DRAWS).pvalue > REJECT_BELOW


def _noise_of_another_position(position: int) -> int:
    return sampler(PLAIN)(position // 50)


def _temperature_ignored(position: int) -> int:
    return sampler(replace(WARM, temperature=1.0))(position)


def _noise_is_uniform(position: int) -> int:
    noise = np.exp(-np.exp(-gumbel_noise(11, 0, position, len(LOGITS))))
    return int((LOGITS + noise).argmax())


def _top_p_keeps_one_too_few(position: int) -> int:
    scores = restrict(LOGITS, NUCLEUS)
    scores[np.where(np.isfinite(scores), scores, np.inf).argmin()] = -np.inf
    return int((scores + gumbel_noise(13, 0, position, len(scores))).argmax())


def _top_p_keeps_one_too_many(position: int) -> int:
    scores = restrict(LOGITS, NUCLEUS)
    left_out = np.where(np.isfinite(scores), -np.inf, LOGITS - LOGITS.max())
    scores[left_out.argmax()] = left_out.max()
    return int((scores + gumbel_noise(13, 0, position, len(scores))).argmax())


@pytest.mark.parametrize(
    ("wrong", "distribution"),
    [
        (_noise_of_another_position, expected()),
        (_noise_is_uniform, expected()),
        (_temperature_ignored, expected(temperature=TEMPERATURE)),
        (_top_p_keeps_one_too_few, expected(top_p=TOP_P)),
        (_top_p_keeps_one_too_many, expected(top_p=TOP_P)),
    ],
)
def test_wrong_samplers_are_found_out(wrong: Draw, distribution: npt.NDArray[np.float64]) -> None:
    assert p_value(wrong, distribution) < REJECT_BELOW
