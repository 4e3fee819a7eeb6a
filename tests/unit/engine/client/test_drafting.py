from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.client.drafter import Drafter
from engine.client.drafting import drafting_for
from engine.client.steering import BY_PROBABILITIES, MODELS
from engine.core.clock import SystemClock
from engine.core.errors import RequestError
from engine.core.generation import DraftKind, DraftMode, DraftModeWish, Speculation
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.speculation.costs import PLAIN, Costs, Source
from engine.speculation.estimates import Timing
from engine.speculation.worker_process import DraftOrder
from tests.support.api_backend import tiny_spec

FILES = ModelFiles(tiny_spec(), Path("nowhere"), "nowhere")
DRAFTER = Drafter(DraftOrder(FILES, FILES), SystemClock())


@pytest.mark.parametrize(
    ("mode", "params", "may"),
    [
        ("auto", [SamplingParams(), SamplingParams(temperature=0.5)], True),
        ("auto", [SamplingParams()], False),
        ("auto", [SamplingParams(temperature=0.5, logprobs=2)], False),
        (DraftMode.SHARED, [SamplingParams(temperature=0.5)], False),
    ],
    ids=["drawn", "greedy", "log-probabilities", "not-asked-for"],
)
def test_modes_are_chosen_from_where_they_are_exact_and_make_a_difference(
    mode: DraftModeWish, params: Sequence[SamplingParams], may: bool
) -> None:
    drafting = drafting_for(Speculation("auto", mode=mode), DRAFTER, params)
    assert drafting is not None
    assert drafting.make_policy is not None
    assert drafting.wants_replica is may
    costs = Costs(1, 0.1, 0.0, 0.0, math.inf, 0.0, client_rtt_s=0.5)
    timing = Timing()
    timing.note(PLAIN, costs.plain_s, costs.plain_s)
    policy = drafting.make_policy(costs, timing)
    for _ in range(20):
        policy.observe_guesses(BY_PROBABILITIES[0], 10, 10)
        policy.observe_guesses(MODELS[0], 10, 1)
        policy.observe(PLAIN, 1.0, costs.plain_s)
    assert (policy.choose({Source.LOOKUP}).option in BY_PROBABILITIES) is may


@pytest.mark.parametrize("kind", ["ngram", "auto", "off"])
def test_mode_of_a_models_chains_needs_a_model_in_every_round(kind: DraftKind) -> None:
    with pytest.raises(RequestError, match="draft set to model"):
        drafting_for(Speculation(kind, mode=DraftMode.DSD), DRAFTER)


def test_nothing_can_be_chosen_where_a_model_drafts_in_every_round() -> None:
    with pytest.raises(RequestError, match="draft set to auto"):
        drafting_for(Speculation("model", mode="auto"), DRAFTER)


@pytest.mark.parametrize("kind", ["ngram", "auto", "off"])
def test_any_mode_is_fine_where_there_is_no_draft_to_choose_one_for(kind: DraftKind) -> None:
    params = [SamplingParams(temperature=0.5)]
    drafting = drafting_for(Speculation(kind, mode="auto"), None, params)
    assert drafting is None or not drafting.wants_replica
