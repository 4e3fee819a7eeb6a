from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.core.errors import ModelError
from engine.core.sampling_params import SamplingParams
from engine.sampling.noise import gumbel_noise
from engine.sampling.sample import Picked, SampleRequest, penalise, sample

EMPTY = np.empty(0, np.int32)


def request(
    params: SamplingParams, prompt: tuple[int, ...] = (), generated: tuple[int, ...] = ()
) -> SampleRequest:
    return SampleRequest(
        params, len(prompt + generated), np.array(prompt, np.int32), np.array(generated, np.int32)
    )


def pick(logits: list[float], params: SamplingParams, **history: tuple[int, ...]) -> Picked:
    return sample(torch.tensor([logits]), [request(params, **history)])[0]


def test_the_defaults_are_greedy_and_ties_go_to_the_lowest_id() -> None:
    assert pick([0.0, 3.0, 3.0, 1.0], SamplingParams()).id == 1
    assert pick([0.0, 3.0, 3.0, 1.0], SamplingParams(logprobs=0)).id == 1


def test_a_rows_token_does_not_depend_on_its_neighbours() -> None:
    logits = torch.randn(4, 300, generator=torch.Generator().manual_seed(0))
    requests = [
        request(SamplingParams()),
        request(SamplingParams(temperature=1.5, seed=3)),
        request(SamplingParams(temperature=1.5, seed=3, choice=1, top_k=50)),
        request(SamplingParams(frequency_penalty=2.0), generated=(5, 5)),
    ]
    together = sample(logits, requests)
    alone = [sample(logits[i : i + 1], [requests[i]])[0] for i in range(4)]
    assert together == alone
    assert sample(logits.flip(0), requests[::-1]) == together[::-1]


def test_repetition_penalty_follows_hugging_faces_rule() -> None:
    scores = penalise(
        np.array([4.0, -4.0, 4.0, -4.0], np.float32),
        request(SamplingParams(repetition_penalty=2.0), prompt=(0,), generated=(1, 1)),
    )
    assert scores.tolist() == [2.0, -8.0, 4.0, -4.0]


def test_presence_and_frequency_penalties_count_the_answer_alone() -> None:
    params = SamplingParams(presence_penalty=0.5, frequency_penalty=0.25)
    scores = penalise(
        np.zeros(4, np.float32), request(params, prompt=(0, 0, 1), generated=(1, 2, 2))
    )
    assert scores.tolist() == [0.0, -0.75, -1.0, 0.0]


def test_bias_comes_before_the_repetition_penalty() -> None:
    params = SamplingParams(logit_bias=((0, 3.0),), repetition_penalty=2.0)
    scores = penalise(np.array([-1.0, 0.0], np.float32), request(params, prompt=(0,)))
    assert scores.tolist() == [1.0, 0.0]


def test_bias_bans_and_forces_tokens() -> None:
    assert pick([5.0, 4.0, 0.0], SamplingParams(logit_bias=((0, -100.0),))).id == 1
    assert pick([5.0, 4.0, 0.0], SamplingParams(logit_bias=((2, 100.0),))).id == 2


def test_logprobs_are_of_the_model_before_penalties_and_temperature() -> None:
    logits = [2.0, 1.0, 0.0, -1.0]
    params = SamplingParams(
        temperature=0.1, logit_bias=((3, 100.0),), repetition_penalty=3.0, logprobs=2
    )
    picked = pick(logits, params, prompt=(0, 1))
    expected = torch.tensor(logits).log_softmax(0).tolist()
    assert picked.id == 3
    assert picked.logprobs is not None
    assert picked.logprobs.logprob == pytest.approx(expected[3], abs=1e-6)
    assert [token for token, _ in picked.logprobs.top] == [0, 1]
    assert [value for _, value in picked.logprobs.top] == pytest.approx(expected[:2], abs=1e-6)


def test_logprobs_without_alternatives_report_the_token_alone() -> None:
    picked = pick([1.0, 0.0], SamplingParams(logprobs=0))
    assert picked.logprobs is not None
    assert picked.logprobs.top == ()


def test_a_tiny_temperature_is_greedy() -> None:
    logits = torch.randn(1, 500, generator=torch.Generator().manual_seed(1)) * 50
    for seed in range(50):
        params = SamplingParams(temperature=1e-30, seed=seed)
        assert sample(logits, [request(params)])[0].id == int(logits.argmax())


def test_half_precision_logits_are_sampled_in_single_precision() -> None:
    logits = torch.randn(1, 500, generator=torch.Generator().manual_seed(2)).bfloat16()
    params = SamplingParams(temperature=1.0, seed=4)
    assert sample(logits, [request(params)]) == sample(logits.float(), [request(params)])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_numbers_are_an_error_and_not_a_token(
    bad: float, temperature: float
) -> None:
    with pytest.raises(ModelError, match="float32"):
        pick([0.0, bad, 1.0], SamplingParams(temperature=temperature))


def test_noise_never_changes_between_versions() -> None:
    noise = gumbel_noise(seed=2**64 - 1, choice=3, position=1000, vocab_size=5)
    assert noise.dtype == np.float32
    assert noise.tolist() == pytest.approx(
        [0.7937690615654, 1.8482470512390, 3.1618597507477, 0.9754608273506, 2.9040613174438]
    )
