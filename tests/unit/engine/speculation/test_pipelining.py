from __future__ import annotations

import random

import pytest

from engine.speculation.pipelining import chunks_ahead, pipelined_tokens_per_s, tokens_per_s


def played(rate: float, chunk: int, round_s: float, interval_s: float, *, flows: bool) -> float:
    """Tokens per second of a long session, drafted token by drafted token."""
    rng = random.Random(1)
    tokens, now_s = 0, 0.0
    for _ in range(20_000):
        now_s += round_s
        while True:
            right = next((i for i in range(chunk) if rng.random() >= rate), chunk)
            tokens += right
            if right < chunk or not flows:
                tokens += 1  # the target's own
                break
            now_s += interval_s
    return tokens / now_s


@pytest.mark.parametrize("rate", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("chunk", [1, 4])
def test_speeds_are_those_of_a_session_that_is_played(rate: float, chunk: int) -> None:
    waiting = played(rate, chunk, 0.4, 0.1, flows=False)
    flowing = played(rate, chunk, 0.4, 0.1, flows=True)
    assert tokens_per_s(rate, chunk, 0.4) == pytest.approx(waiting, rel=0.03)
    assert pipelined_tokens_per_s(rate, chunk, 0.4, 0.1, 9) == pytest.approx(flowing, rel=0.03)


def test_chunks_flow_where_drafts_are_right_and_stages_idle() -> None:
    assert chunks_ahead(0.95, 4, 0.6, 0.1, idle_share=0.9, most_ahead=8) == 5
    assert chunks_ahead(0.95, 4, 0.6, 0.1, idle_share=0.9, most_ahead=2) == 2


def test_chunks_wait_where_drafts_are_wrong_or_stages_busy_or_the_pipe_is_short() -> None:
    assert chunks_ahead(0.2, 4, 0.6, 0.1, idle_share=0.9, most_ahead=8) == 1
    assert chunks_ahead(0.95, 4, 0.6, 0.1, idle_share=0.0, most_ahead=8) == 1
    assert chunks_ahead(0.95, 4, 0.1, 0.1, idle_share=0.9, most_ahead=8) == 1


def test_no_more_flows_than_may_be_on_its_way() -> None:
    free = pipelined_tokens_per_s(0.9, 4, 0.6, 0.05, most_ahead=12)
    held = pipelined_tokens_per_s(0.9, 4, 0.6, 0.05, most_ahead=2)
    assert held < free
    assert held == pipelined_tokens_per_s(0.9, 4, 0.6, 0.3, most_ahead=12)
