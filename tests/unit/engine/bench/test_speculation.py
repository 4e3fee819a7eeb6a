from __future__ import annotations

import random
import statistics

import pytest

from engine.bench.measured import Counters, Measured
from engine.bench.speculation import median_interval, row_of
from engine.bench.speculation_prompts import PROMPT_KINDS, speculation_prompts
from engine.core.generation import Speculation
from engine.protocol.frames import HEADER_BYTES
from engine.protocol.messages import StatsReply
from engine.protocol.rows import ROW_BYTES

WAY = Speculation("ngram", 4)
FRAMING = HEADER_BYTES + ROW_BYTES


def counters(rounds: int, down: int, compute_s: float) -> Counters:
    stage = StatsReply(
        request=1,
        forwards=rounds,
        tokens=0,
        compute_s=compute_s,
        cpu_s=0.0,
        encode_s=0.0,
        wait_s=0.0,
        local_s=0.0,
        sent_bytes={"me": rounds * (FRAMING + down)},
    )
    return Counters(stages=(stage,), client_sent_bytes={})


def plain(seconds: float) -> Measured:
    return Measured(
        started_s=0.0,
        arrivals_s=(tuple(1 + seconds * i / 10 for i in range(11)),),
        ids_sha256="same",
        client="me",
        before=counters(1, 2, 1.0),
        after=counters(11, 2, 2.0),
        rounds=11,
    )


def drafted(seconds: float) -> Measured:
    """Five rounds after the first token, of two tokens each."""
    times = tuple(1 + seconds * ((i + 1) // 2) / 5 for i in range(11))
    return Measured(
        started_s=0.0,
        arrivals_s=(times,),
        ids_sha256="same",
        client="me",
        before=counters(0, 0, 1.0),
        after=counters(5, 2, 1.5),
        rounds=6,
        drafted_tokens=20,
        accepted_tokens=5,
        sent_row_bytes=5 * (FRAMING + 10),
        draft_s=0.1,
    )


def test_row_says_how_much_faster_and_what_a_round_costs() -> None:
    row = row_of("E5", "chat", WAY, [plain(10.0)] * 3, [drafted(5.0), drafted(4.0), drafted(2.0)])
    assert row.speedup == pytest.approx(2.5)
    assert row.speedup_interval == (pytest.approx(2.0), pytest.approx(5.0))
    assert row.acceptance == 0.25
    assert row.tokens_per_round == 2.0
    assert row.drafted_per_round == 4.0
    assert (row.up_bytes_per_round, row.down_bytes_per_round) == (10.0, 2.0)
    assert row.round_ms == pytest.approx(1e3 * (5 + 4 + 2) / 15)
    assert row.compute_ms == pytest.approx(100)
    assert row.draft_ms == pytest.approx(20)
    assert row.plain_step_ms == pytest.approx(1000)
    assert row.ids_equal


def test_what_a_client_sends_that_leads_now_and_then_is_told_with_its_framing() -> None:
    row = row_of("E5", "chat", Speculation("auto"), [plain(10.0)], [drafted(5.0)])
    assert row.up_bytes_per_round == FRAMING + 10
    assert row.down_bytes_per_round == 2


def test_interval_of_a_median_holds_it_19_times_of_20() -> None:
    random_source = random.Random(1)
    for size in (6, 9, 20):
        hits = 0
        for _ in range(600):
            low, high = median_interval([random_source.random() for _ in range(size)])
            hits += low <= 0.5 <= high
        assert hits / 600 > 0.93
    few = [3.0, 1.0, 2.0]
    assert median_interval(few) == (1.0, 3.0)
    assert median_interval([statistics.median(few)]) == (2.0, 2.0)


@pytest.mark.parametrize("kind", PROMPT_KINDS)
def test_prompts_differ_and_are_the_same_every_time(kind: str) -> None:
    def encode(messages):
        return [ord(letter) for letter in messages[0]["content"]]

    prompts = speculation_prompts(encode, kind, 20, seed=3)
    assert prompts == speculation_prompts(encode, kind, 20, seed=3)
    assert len({tuple(prompt) for prompt in prompts}) == 20
    assert prompts != speculation_prompts(encode, kind, 20, seed=4)
