"""Kills are drawn by the seed, and what they cost is read off the arrivals."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.bench.disturbed import count_generations, draw_kills, pauses_s, spare_spans
from engine.bench.measured import Measured
from engine.bench.report import tokens_per_s
from engine.bench.request import SwarmBench
from engine.config import ModelConfig
from engine.core.plans import Span

SPANS = [Span(0, 2), Span(2, 4), Span(4, 6)]


def bench(**fields) -> SwarmBench:
    usual = {"model": "starter", "stages": 3, "batch_sizes": (4,), "prompt_tokens": 8}
    return SwarmBench(**{**usual, "new_tokens": 16, "model_config": ModelConfig(), **fields})


@pytest.mark.parametrize("kills", [1, 3, 5, 20])
@pytest.mark.parametrize("generations", [0, 7])
def test_all_kills_are_drawn_and_in_one_generation_no_stage_dies_twice(kills, generations):
    asked = bench(kills=kills, generations=generations)
    count = count_generations(asked)
    drawn = draw_kills(asked, count)
    assert len(drawn) == kills
    assert all(kill.generation < count and 0 < kill.at_token < 4 * 16 for kill in drawn)
    assert max(Counter((kill.generation, kill.stage) for kill in drawn).values()) == 1


def test_the_seed_decides_who_dies_when():
    one, same, other = (draw_kills(bench(kills=9, seed=seed), 3) for seed in (1, 1, 2))
    assert one == same != other


def test_every_stage_that_will_die_has_a_spare():
    asked = bench(kills=9)
    assert sorted(spare_spans(asked, SPANS), key=lambda span: span.start) == SPANS
    assert spare_spans(bench(), SPANS) == []
    assert spare_spans(bench(spares=4), SPANS) == [*SPANS, SPANS[0]]


def test_the_pause_around_each_kill_is_the_longest_after_it():
    arrivals_s = ((0.0, 1.0, 2.0, 5.0, 6.0), (0.5, 1.5, 2.5, 5.5, 9.5))
    measured = Measured(
        started_s=0.0, arrivals_s=arrivals_s, ids_sha256="a", reached_s=(1.5, 5.5, 9.5)
    )
    assert pauses_s(measured) == [2.5, 3.5, 0.0]


def test_sequences_that_never_decode_together_count_by_their_whole_time():
    assert tokens_per_s([(0.0, 1.0, 2.0), (8.0, 9.0, 10.0)]) == pytest.approx(4 / 10)
