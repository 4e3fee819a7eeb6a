from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.speculation.draft_model import DraftModel
from engine.speculation.rejection import Draws, check_replica, count_accepted, normalised
from engine.speculation.sampled_chain import ChainSampler, distribution

PROMPT = [5, 99, 301, 7, 260, 44, 12]
PARAMS = SamplingParams(temperature=0.8, top_p=0.95, repetition_penalty=1.2, seed=11)
LARGEST_DIFFERENCE = 3e-6
"""Of float32 probabilities from batches of other shapes."""


@pytest.fixture(scope="module")
def model(target: ModelFiles) -> DraftModel:
    return DraftModel.sibling(target, target, dtype=torch.float32, device=torch.device("cpu"))


def sampler(model: DraftModel) -> ChainSampler:
    return ChainSampler(model, PARAMS, len(PROMPT), 64)


def test_a_replica_says_of_every_place_what_the_client_drew_from(model: DraftModel) -> None:
    client, replica = sampler(model), sampler(model)
    committed = list(PROMPT)
    for refused in (2, 0, 3):
        chain = client.draw(committed, 4)
        again = replica.weights_after(committed, chain.ids[:refused])
        id_ = chain.ids[refused]
        check_replica(chain.of_ids[refused], float(again[id_]), LARGEST_DIFFERENCE)
        np.testing.assert_allclose(
            again.astype(np.float64), chain.weights[refused].astype(np.float64), atol=1e-4
        )
        committed += [*chain.ids[:refused], 17]


def test_tokens_that_no_filter_leaves_are_never_drawn(model: DraftModel) -> None:
    chain = sampler(model).draw(PROMPT, 6)
    assert all(weight > 0 for weight in chain.of_ids)
    assert all(0 < (weights > 0).sum() < 512 for weights in chain.weights)


def test_a_draft_that_equals_its_target_is_nearly_always_accepted(model: DraftModel) -> None:
    """Rounding up costs less than a thousandth of each token."""
    chain = sampler(model).draw(PROMPT, 8)
    p = [normalised(weights) for weights in chain.weights]
    assert count_accepted(chain.ids, chain.of_ids, p, Draws(PARAMS.seed, 0), len(PROMPT)) == 8


def test_a_distribution_follows_the_parameters() -> None:
    logits = np.array([2.0, 1.0, 0.0, -1.0], np.float32)
    plain = distribution(logits, SamplingParams(temperature=1.0), [0], 1)
    np.testing.assert_allclose(plain, np.exp(logits) / np.exp(logits).sum(), rtol=1e-6)
    filtered = distribution(logits, SamplingParams(temperature=0.5, top_k=2), [0], 1)
    np.testing.assert_allclose(filtered, [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2)), 0, 0])
    penalised = SamplingParams(temperature=1.0, frequency_penalty=1.0)
    assert distribution(logits, penalised, [3, 0, 0], 1)[0] == pytest.approx(
        distribution(logits - np.array([2, 0, 0, 0], np.float32), SamplingParams(1.0), [3], 1)[0]
    )
