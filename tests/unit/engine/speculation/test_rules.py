"""The outcome of every rule is distributed as the target, and a wrong rule is found out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from engine.core.errors import RemoteProtocolError
from engine.sampling.noise import gumbel_noise
from engine.speculation.rejection import (
    Draws,
    Probabilities,
    TwoBytes,
    check_replica,
    count_accepted,
    normalised,
    residual,
    rounded_up,
)
from engine.speculation.shared_noise import agreement, overlap, ranked
from engine.speculation.tree import ROOT, TokenTree, accept

SAMPLES = 20_000
V = 5
SURE_ENOUGH = 1e-4
"""Chance of a right rule to fail; the seeds are fixed, so it either does or does not."""
PREFIX = 7
"""Place of the first token that is drawn."""

_rng = np.random.default_rng(3)
START = V
P: Probabilities = _rng.dirichlet(np.full(V, 0.7), V + 1)
"""The target after each token, and at the start."""
Q: Probabilities = 0.5 * P + 0.5 * _rng.dirichlet(np.full(V, 0.7), V + 1)
Q[2, 4] = 0.0  # the draft need not know every token
Q /= Q.sum(1, keepdims=True)
Q_SENT: list[TwoBytes] = [rounded_up(q) for q in Q]
P_SENT: list[Probabilities] = [normalised(rounded_up(p)) for p in P]

Rest = Callable[[Probabilities, TwoBytes], Probabilities]


def by_rejection(
    seed: int, target: npt.NDArray[np.float64] | list[Probabilities] = P, rest: Rest = residual
) -> list[int]:
    """Two tokens by rounds of two drafted ones, as DSD, DSSD and DISCO make them."""
    draws = Draws(seed, 0)
    out: list[int] = []
    while len(out) < 2:
        drafted: list[int] = []
        before = [out[-1] if out else START]
        for _ in range(2):
            drafted.append(draws.token(Q_SENT[before[-1]], PREFIX + len(out) + len(drafted)))
            before.append(drafted[-1])
        p = [target[token] for token in before]
        q = [float(Q_SENT[last][id_]) for last, id_ in zip(before, drafted, strict=False)]
        kept = count_accepted(drafted, q, p, draws, PREFIX + len(out))
        place = PREFIX + len(out) + kept
        out += drafted[:kept]
        if kept == len(drafted):
            out.append(draws.token(p[kept], place))
        else:
            out.append(draws.another(rest(p[kept], Q_SENT[before[kept]]), place))
    return out[:2]


def by_shared_noise(seed: int) -> list[int]:
    """Two tokens by rounds over trees of two siblings, each with its likeliest child."""
    out: list[int] = []
    while len(out) < 2:
        last = out[-1] if out else START
        noises = [gumbel_noise(seed, 0, PREFIX + len(out) + depth, V) for depth in range(3)]
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(P).astype(np.float32), np.log(Q).astype(np.float32)
        siblings = ranked(log_q[last], noises[0], 2)
        children = [ranked(log_q[id_], noises[1], 1)[0] for id_ in siblings]
        tree = TokenTree((*siblings, *children), (ROOT, ROOT, 0, 1))
        places = [0, *tree.depths()]
        targets = [
            int((log_p[before] + noises[place]).argmax())
            for before, place in zip([last, *tree.ids], places, strict=True)
        ]
        out.append(targets[0])
        out += [targets[node + 1] for node in accept(tree, targets)]
    return out[:2]


def chance(rule: Callable[[int], list[int]]) -> float:
    """How likely counts as uneven as the rule's are, if it draws from the target."""
    counts = np.zeros((V, V))
    for seed in range(SAMPLES):
        first, second = rule(seed)
        counts[first, second] += 1
    expected = (P[START][:, None] * P[:V]).ravel() * SAMPLES
    common = expected >= 5
    observed = np.append(counts.ravel()[common], counts.ravel()[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    if expected[-1] == 0:
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected).pvalue)


def test_dsd_and_disco_draw_from_the_target() -> None:
    assert chance(by_rejection) > SURE_ENOUGH


def test_dssd_draws_from_the_target() -> None:
    assert chance(lambda seed: by_rejection(seed, P_SENT)) > SURE_ENOUGH


def test_shared_noise_over_trees_draws_from_the_target() -> None:
    assert chance(by_shared_noise) > SURE_ENOUGH


def test_drawing_again_from_the_whole_target_is_found_out() -> None:
    assert chance(lambda seed: by_rejection(seed, rest=lambda p, q: p)) < SURE_ENOUGH


def test_two_byte_weights_are_never_below_what_they_stand_for() -> None:
    q = np.random.default_rng(0).dirichlet(np.full(1000, 0.05))
    sent = rounded_up(q)
    assert sent.dtype == np.float16
    assert (sent.astype(np.float64) >= q).all()
    assert (sent[q > 0] > 0).all()
    assert (sent.astype(np.float64) <= q * (1 + 2.0**-10) + 2.0**-24).all()
    assert rounded_up(np.array([0.0, 1.0])).tolist() == [0.0, 1.0]


@given(st.integers(0, 2**32 - 1), st.floats(0.02, 3.0))
@settings(deadline=None, max_examples=50)
def test_what_acceptance_and_residual_give_adds_up_to_the_target(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(20, spread), 2)
    sent = rounded_up(q)
    drawn = normalised(sent)
    accepted = drawn * np.minimum(1.0, p / np.maximum(sent.astype(np.float64), 1e-300))
    rest = residual(p, sent)
    assert rest.sum() == pytest.approx(1 - accepted.sum(), abs=1e-9)
    np.testing.assert_allclose(accepted + rest, p, atol=1e-9)


@pytest.mark.parametrize("q", [0.0, -0.5, 1.01, float("nan"), float("inf")])
def test_a_weight_that_can_be_no_probability_is_refused(q: float) -> None:
    with pytest.raises(RemoteProtocolError, match="which is none"):
        count_accepted([1], [q], [P[0]], Draws(0, 0), 0)


def test_a_client_that_lies_about_a_probability_is_found_out_by_the_replica() -> None:
    honest = float(rounded_up(np.array([0.3]))[0])
    nearly = float(rounded_up(np.array([0.3 + 3e-6]))[0])
    check_replica(nearly, honest, 3e-6)
    for lie in (0.31, 0.29, float("nan")):
        with pytest.raises(RemoteProtocolError, match="same draft model"):
            check_replica(lie, honest, 3e-6)


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 3.0))
@settings(deadline=None, max_examples=50)
def test_shared_noise_accepts_nearly_as_much_as_any_rule_can(seed: int, spread: float) -> None:
    p, q = np.random.default_rng(seed).dirichlet(np.full(30, spread), 2)
    most = overlap(p, q)
    assert most / (2 - most) - 1e-9 <= agreement(p, q) <= most + 1e-9
    assert agreement(p, p) == pytest.approx(1.0)


def test_agreement_is_how_often_the_picks_are_equal() -> None:
    p, q = np.random.default_rng(5).dirichlet(np.ones(8), 2)
    noises = np.random.default_rng(6).gumbel(size=(100_000, 8))
    equal = ((np.log(p) + noises).argmax(1) == (np.log(q) + noises).argmax(1)).mean()
    assert agreement(p, q) == pytest.approx(equal, abs=0.006)  # four standard deviations


def test_siblings_come_in_the_order_of_their_noisy_scores_without_excluded_tokens() -> None:
    log_q = np.array([0.0, -1.0, -np.inf, 1.0], np.float32)
    assert ranked(log_q, None, 2) == [3, 0]
    assert ranked(log_q, np.array([0, 3, 9, 0], np.float32), 9) == [1, 3, 0]
