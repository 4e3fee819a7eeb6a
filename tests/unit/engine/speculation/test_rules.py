"""The outcome of every rule is distributed as the target, and a wrong rule is found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from engine.core.errors import RemoteProtocolError
from engine.core.generation import DraftMode
from engine.core.sampling_params import SamplingParams
from engine.sampling.noise import gumbel_noise
from engine.sampling.rejection import (
    Draws,
    Probabilities,
    TwoBytes,
    check_weights,
    normalised,
    replica_agrees,
    residual,
    rounded_up,
)
from engine.sampling.sample import SampleRequest, sample
from engine.speculation.shared_noise import agreement, overlap, ranked
from engine.speculation.tree import ROOT, TokenTree, accept

SAMPLES = 20_000
V = 5
SURE_ENOUGH = 1e-4
"""Chance of a right rule to fail; the seeds are fixed, so it either does or does not."""
EMPTY = np.empty(0, np.int32)
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
LOGITS = torch.from_numpy(np.log(P).astype(np.float32))

Rest = Callable[[Probabilities, TwoBytes], Probabilities]


def by_probabilities(
    mode: DraftMode,
    seed: int,
    *,
    told: Sequence[TwoBytes] = Q_SENT,
    replica: Sequence[TwoBytes] = Q_SENT,
    rest: Rest = residual,
) -> list[int]:
    """Two tokens by rounds of two drafted ones, as the last stage and a client make them.

    Args:
        mode: Of [DC].
        seed: Of the answer.
        told: What the client says that it has drawn from.
        replica: In DISCO, what the last stage takes for the draft.
        rest: In DSSD, what the client draws by after a refusal.
    """
    draws, params = Draws(seed, 0), SamplingParams(temperature=1.0, seed=seed)
    out: list[int] = []
    while len(out) < 2:
        drafted: list[int] = []
        before = [out[-1] if out else START]
        for _ in range(2):
            drafted.append(draws.token(Q_SENT[before[-1]], PREFIX + len(out) + len(drafted)))
            before.append(drafted[-1])
        whole = np.array([told[last] for last in before[:2]])
        request = SampleRequest(
            params,
            PREFIX + len(out),
            EMPTY,
            EMPTY,
            drafted=np.array(drafted, np.int32),
            parents=(-1, 0),
            mode=mode,
            weights=whole if mode is DraftMode.DSD else whole[[0, 1], drafted],
            ask_replica=lambda path, refused, sent, last=before: replica[last[len(path)]],
        )
        (picked,) = sample(LOGITS[before], [request])
        out += drafted[: picked.accepted]
        if picked.refusal is not None:
            left = rest(normalised(picked.refusal), Q_SENT[before[picked.accepted]])
            out.append(draws.another(left, PREFIX + len(out)))
        else:
            out.append(picked.id)
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


def chance(rule: Callable[[int], list[int]], samples: int = SAMPLES) -> float:
    """How likely counts as uneven as the rule's are, if it draws from the target."""
    counts = np.zeros((V, V))
    for seed in range(samples):
        first, second = rule(seed)
        counts[first, second] += 1
    expected = (P[START][:, None] * P[:V]).ravel() * samples
    common = expected >= 5
    observed = np.append(counts.ravel()[common], counts.ravel()[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    if expected[-1] == 0:
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected).pvalue)


def chance_after_refusals(draw: Callable[[int], int]) -> float:
    """The same of what is picked plainly where a refusal came to nothing, as when a stage was lost.

    Args:
        draw: By seed, what had been drafted there.
    """
    counts = np.zeros(V)
    for seed in range(SAMPLES):
        drafted = draw(seed)
        if not Draws(seed, 0).accepts(P[START][drafted], float(Q_SENT[START][drafted]), PREFIX):
            counts[int((np.log(P[START]) + gumbel_noise(seed, 0, PREFIX, V)).argmax())] += 1
    return float(stats.chisquare(counts, P[START] * counts.sum()).pvalue)


def test_token_in_place_of_a_refusal_that_was_lost_is_drawn_from_the_target() -> None:
    assert chance_after_refusals(lambda s: Draws(s, 0).token(Q_SENT[START], PREFIX)) > SURE_ENOUGH


def test_drafts_drawn_by_the_targets_own_numbers_would_be_found_out() -> None:
    log_q = np.log(Q[START])
    wrong = chance_after_refusals(
        lambda seed: int((log_q + gumbel_noise(seed, 0, PREFIX, V)).argmax())
    )
    assert wrong < SURE_ENOUGH


@pytest.mark.parametrize("mode", [DraftMode.DSD, DraftMode.DSSD, DraftMode.DISCO])
def test_acceptance_by_probabilities_draws_from_the_target(mode: DraftMode) -> None:
    assert chance(lambda seed: by_probabilities(mode, seed)) > SURE_ENOUGH


def test_shared_noise_over_trees_draws_from_the_target() -> None:
    assert chance(by_shared_noise) > SURE_ENOUGH


OTHER = [rounded_up(q) for q in Q[::-1]]
"""Another draft."""


@pytest.mark.parametrize(
    ("mode", "wrong"),
    [
        (DraftMode.DSD, {"told": OTHER}),
        (DraftMode.DSSD, {"rest": lambda p, q: p}),
        (DraftMode.DISCO, {"replica": OTHER}),
    ],
    ids=["told of another draft", "drawn again from the whole target", "replica of another draft"],
)
def test_rule_that_is_a_little_wrong_is_found_out(mode: DraftMode, wrong: dict[str, Any]) -> None:
    assert chance(lambda seed: by_probabilities(mode, seed, **wrong), SAMPLES // 4) < SURE_ENOUGH


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


@pytest.mark.parametrize("q", [-0.5, 1.01, float("nan"), float("inf")])
def test_a_weight_that_can_be_no_probability_is_refused(q: float) -> None:
    weights = np.array([0.5, q, 0.25], np.float16)
    with pytest.raises(RemoteProtocolError, match="which is none"):
        check_weights(weights, weights[:1])


def test_only_a_token_that_was_not_drawn_may_have_the_weight_zero() -> None:
    weights = np.array([0.5, 0.0, 1.0], np.float16)
    check_weights(weights, weights[[0, 2]])
    with pytest.raises(RemoteProtocolError, match="which is none"):
        check_weights(weights, weights)


def test_replica_agrees_with_what_rounding_alone_has_changed_and_with_no_lie() -> None:
    honest = float(rounded_up(np.array([0.3]))[0])
    assert replica_agrees(float(rounded_up(np.array([0.3 + 3e-6]))[0]), honest)
    assert not any(replica_agrees(lie, honest) for lie in (0.31, 0.29, float("nan")))


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
