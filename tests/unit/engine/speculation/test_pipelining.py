from __future__ import annotations

import random
from dataclasses import replace

import pytest

from engine.speculation.controller import Controller
from engine.speculation.costs import PLAIN, Costs, Option, Source
from engine.speculation.estimates import Timing
from engine.speculation.pipelining import answer_s, answer_tokens, levels_in_time


def played(rate: float, chunk: int, round_s: float, interval_s: float) -> tuple[float, float]:
    """Tokens and seconds of an answer in a long session, drafted token by drafted token.

    A chunk that goes on begins with the guess of what the target gave after the one before it.
    """
    rng = random.Random(1)
    tokens, now_s, answers = 0, 0.0, 40_000
    flows = False
    for _ in range(answers):
        now_s += interval_s if flows else round_s
        own = chunk - 1  # the next one's first token is a guess like any other
        right = next((i for i in range(own) if rng.random() >= rate), own)
        tokens += right + 1
        flows = right == own and rng.random() < rate
    return tokens / answers, now_s / answers


@pytest.mark.parametrize("rate", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("chunk", [2, 4])
def test_answers_are_those_of_a_session_that_is_played(rate: float, chunk: int) -> None:
    tokens, seconds = played(rate, chunk, 0.4, 0.1)
    assert answer_tokens(rate, chunk) == pytest.approx(tokens, rel=0.03)
    assert answer_s(0.4, 0.1, rate**chunk, 9) == pytest.approx(seconds, rel=0.03)


def test_no_more_flows_than_may_be_on_its_way() -> None:
    free = answer_s(0.6, 0.05, 0.9, most_ahead=12)
    held = answer_s(0.6, 0.05, 0.9, most_ahead=2)
    assert held > free
    assert held == answer_s(0.6, 0.3, 0.9, most_ahead=12)


LONG = Costs(
    num_stages=3,
    compute_s=0.02,
    compute_token_s=0.0005,
    token_bytes=1152,
    bytes_per_s=2.5e6,
    rtt_s=0.1,
    client_rtt_s=0.05,
)
OPTIONS = (Option(Source.LOOKUP, 8), Option(Source.LOOKUP, 8, ahead=4))


def chosen(costs: Costs, rate: float) -> Option:
    controller = Controller(OPTIONS, costs, Timing())
    controller.observe(PLAIN, 1.0, costs.plain_s)
    for _ in range(100):
        controller.observe_guesses(OPTIONS[0], 10, round(10 * rate))
    return controller.choose().option


def test_chunks_flow_where_drafts_are_right_and_the_pipe_is_long() -> None:
    assert chosen(LONG, 1.0).ahead == 4


@pytest.mark.parametrize(
    ("costs", "rate"),
    [
        (LONG, 0.6),
        (replace(LONG, num_stages=1, compute_s=0.2, rtt_s=0.0, client_rtt_s=0.001), 1.0),
    ],
    ids=["drafts are wrong", "nothing is idle"],
)
def test_chunks_wait_where_they_gain_nothing(costs: Costs, rate: float) -> None:
    option = chosen(costs, rate)
    assert not option.is_plain
    assert option.ahead == 1


@pytest.mark.parametrize(
    ("level_s", "away_s", "expected"),
    [
        (0.002, 0.020, (1, 5)),
        (0.005, 0.020, (1, 3)),
        (0.009, 0.020, (2, 5)),
        (0.020, 0.010, (2, 3)),
        (1.0, 0.0, (5, 5)),
        (0.0, 0.0, (1, 5)),
        (0.0, 0.1, (3, 5)),
        (0.0, 1.0, (5, 5)),
    ],
    ids=[
        "in time",
        "looks less far",
        "an answer late",
        "both",
        "never",
        "at once",
        "far",
        "too far",
    ],
)
def test_draft_beside_a_ring_looks_no_further_than_it_can_in_time(
    level_s: float, away_s: float, expected: tuple[int, int]
) -> None:
    assert levels_in_time(5, level_s, away_s, 0.040) == expected
