from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.sampling.rejection import Draws, normalised, read_weights, replica_agrees
from engine.sampling.sample import SampleRequest, probabilities
from engine.speculation.draft_model import DraftModel
from engine.speculation.sampled_chain import ChainSampler, DrawnChain

PROMPT = [5, 99, 301, 7, 260, 44, 12]
PARAMS = SamplingParams(temperature=0.8, top_p=0.95, repetition_penalty=1.2, seed=11)


@pytest.fixture(scope="module")
def model(target: ModelFiles) -> DraftModel:
    return DraftModel.sibling(target, target, dtype=torch.float32, device=torch.device("cpu"))


def sampler(model: DraftModel) -> ChainSampler:
    return ChainSampler(model, PARAMS, len(PROMPT), 64)


def own_weights(chain: DrawnChain) -> list[float]:
    return [float(weight) for weight in read_weights(chain.of_ids)]


def test_a_replica_says_of_every_place_what_the_client_drew_from(model: DraftModel) -> None:
    client, replica = sampler(model), sampler(model)
    committed = list(PROMPT)
    for refused in (2, 0, 3):
        chain = client.draw(committed, 4)
        again = replica.weights_after(committed, chain.ids[:refused])
        assert replica_agrees(own_weights(chain)[refused], float(again[chain.ids[refused]]))
        np.testing.assert_allclose(
            again.astype(np.float64), chain.weights[refused].astype(np.float64), atol=1e-4
        )
        committed += [*chain.ids[:refused], 17]


def test_tokens_that_no_filter_leaves_are_never_drawn(model: DraftModel) -> None:
    chain = sampler(model).draw(PROMPT, 6)
    assert all(weight > 0 for weight in own_weights(chain))
    assert all(0 < (weights > 0).sum() < 512 for weights in chain.weights)


def test_a_draft_that_equals_its_target_is_nearly_always_accepted(model: DraftModel) -> None:
    """Rounding up costs less than a thousandth of each token."""
    chain = sampler(model).draw(PROMPT, 8)
    draws = Draws(PARAMS.seed, 0)
    for place, (id_, weight) in enumerate(zip(chain.ids, own_weights(chain), strict=True)):
        p = float(normalised(chain.weights[place])[id_])
        assert draws.accepts(p, weight, len(PROMPT) + place)


def test_chain_for_which_there_is_no_room_is_empty(model: DraftModel) -> None:
    few = ChainSampler(model, PARAMS, len(PROMPT), len(PROMPT) + 3)
    assert few.draw(PROMPT, 4) == DrawnChain()
    assert len(few.draw(PROMPT, 3).ids) == 3


def test_whole_weights_travel_as_rows_of_the_vocabulary(model: DraftModel) -> None:
    chain = sampler(model).draw(PROMPT, 3)
    whole = read_weights(chain.whole).reshape(3, 512)
    assert whole[range(3), chain.ids].tolist() == own_weights(chain)


def test_a_distribution_follows_the_parameters() -> None:
    logits = np.array([2.0, 1.0, 0.0, -1.0], np.float32)

    def distribution(
        logits: npt.NDArray[np.float32], params: SamplingParams, ids: list[int]
    ) -> npt.NDArray[np.float64]:
        prompt, answer = np.array(ids[:1], np.int32), np.array(ids[1:], np.int32)
        return probabilities(logits, SampleRequest(params, len(ids), prompt, answer))

    plain = distribution(logits, SamplingParams(temperature=1.0), [0])
    np.testing.assert_allclose(plain, np.exp(logits) / np.exp(logits).sum(), rtol=1e-6)
    filtered = distribution(logits, SamplingParams(temperature=0.5, top_k=2), [0])
    np.testing.assert_allclose(filtered, [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2)), 0, 0])
    penalised = SamplingParams(temperature=1.0, frequency_penalty=1.0)
    assert distribution(logits, penalised, [3, 0, 0])[0] == pytest.approx(
        distribution(logits - np.array([2, 0, 0, 0], np.float32), SamplingParams(1.0), [3])[0]
    )
