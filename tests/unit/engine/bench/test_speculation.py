from __future__ import annotations

import random
import statistics
from dataclasses import replace

import pytest

from engine.bench.measured import Counters, Measured
from engine.bench.quantities import LinkShaping
from engine.bench.speculation import lines
from engine.bench.speculation_prompts import PROMPT_KINDS, speculation_prompts
from engine.bench.speculation_rows import Row, Setting, median_interval, row_of
from engine.bench.speculation_tables import crossings
from engine.core.generation import DraftMode, Speculation
from engine.protocol.frames import HEADER_BYTES
from engine.protocol.messages import StatsReply
from engine.protocol.rows import ROW_BYTES

WAY = Speculation("ngram", 4)
FRAMING = HEADER_BYTES + ROW_BYTES
CHAT = Setting("E5", "chat")
IDS = (tuple(range(11)),)


def counters(rounds: int, down: int, compute_s: float) -> Counters:
    stage = StatsReply(
        request=1,
        forwards=rounds,
        tokens=0,
        compute_s=compute_s,
        cpu_s=0.0,
        encode_s=0.0,
        wait_s=0.0,
        local_s=1.1 * compute_s,
        compaction_after_s=0.002 * rounds,
        sent_bytes={"me": rounds * (FRAMING + down)},
    )
    return Counters(stages=(stage,), client_sent_bytes={})


def plain(seconds: float) -> Measured:
    return Measured(
        started_s=0.0,
        arrivals_s=(tuple(1 + seconds * i / 10 for i in range(11)),),
        ids_sha256="same",
        ids=IDS,
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
        ids=IDS,
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
    row = row_of(CHAT, WAY, [plain(10.0)] * 3, [drafted(5.0), drafted(4.0), drafted(2.0)])
    assert row.speedup == pytest.approx(2.5)
    assert row.speedup_interval == (pytest.approx(2.0), pytest.approx(5.0))
    assert row.may_be_as_fast
    assert row.acceptance == 0.25
    assert row.tokens_per_round == 2.0
    assert row.drafted_per_round == 4.0
    assert (row.up_bytes_per_round, row.down_bytes_per_round) == (10.0, 2.0)
    assert row.round_ms == pytest.approx(1e3 * (5 + 4 + 2) / 15)
    assert row.compute_ms == pytest.approx(100)
    assert (row.compaction_ms.before, row.compaction_ms.after) == (0, pytest.approx(2))
    assert "compaction 2.00 ms behind answers, 0.00 ms before them" in list(lines([row]))[1]
    assert row.plain_step_ms == pytest.approx(1000)
    assert row.ids_equal


def test_time_of_a_round_is_split_over_draft_lines_and_stages() -> None:
    setting = Setting("x", "chat", LinkShaping(7000.0, 0.1))
    times = row_of(setting, WAY, [plain(10.0)], [drafted(5.0)]).round_times_ms
    assert times.draft == pytest.approx(20)
    assert times.up == pytest.approx(100 + (FRAMING + 10) / 7)
    assert times.stages == pytest.approx(110)
    assert times.between == 0
    assert times.down == pytest.approx(100 + (FRAMING + 2) / 7)
    parts = times.draft + times.up + times.stages + times.down
    assert times.other == pytest.approx(1000 - parts)


def test_times_are_told_as_if_nothing_had_been_slowed_down() -> None:
    slow = Setting("E5", "chat", slow_down=2.0)
    row, usual = (row_of(s, WAY, [plain(10.0)], [drafted(5.0)]) for s in (slow, CHAT))
    assert row.speedup == usual.speedup
    assert row.round_ms == usual.round_ms / 2
    assert row.round_times_ms.stages == usual.round_times_ms.stages / 2
    assert row.plain_step_ms == usual.plain_step_ms / 2


def test_answers_that_were_not_waited_for_are_compared_as_far_as_they_go() -> None:
    cut = drafted(5.0).model_copy(update={"ids": (IDS[0][:4],)})
    assert row_of(CHAT, WAY, [plain(10.0)], [cut]).ids_equal
    wrong = drafted(5.0).model_copy(update={"ids": ((0, 1, 9),)})
    assert not row_of(CHAT, WAY, [plain(10.0)], [wrong]).ids_equal


def test_modes_that_only_keep_the_distribution_promise_no_ids() -> None:
    wrong = drafted(5.0).model_copy(update={"ids": ((0, 1, 9),)})
    way = Speculation("model", 4, mode=DraftMode.DISCO)
    row = row_of(replace(CHAT, temperature=0.7), way, [plain(10.0)], [wrong])
    assert row.mode == "disco"
    assert row.ids_equal is None
    assert (
        row_of(CHAT, way, [plain(10.0)], [wrong]).ids_equal is False
    )  # greedy, they change nothing


def test_what_a_client_sends_that_leads_now_and_then_is_told_with_its_framing() -> None:
    row = row_of(CHAT, Speculation("auto"), [plain(10.0)], [drafted(5.0)])
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


def test_disco_and_others_cross_where_what_they_send_travels_as_long_as_a_replica_computes() -> (
    None
):
    row = row_of(CHAT, WAY, [plain(10.0)], [drafted(5.0)])

    def measured(mode: str, mbit: int) -> Row:
        # Half of the rounds refuse a token: a distribution of 98,304 bytes, or a pass of 2 ms. Or every
        # round takes along four of them.
        distributions = {"disco": 0.0, "dssd": 0.5, "dsd": 4.0}[mode]
        round_ms = 70 + distributions * 98_304 * 8e-3 / mbit
        fields = {"mode": mode, "link": f"{mbit}mbit,10ms", "round_ms": round_ms}
        if mode == "disco":
            fields |= {"round_ms": 71.0, "replica_ms": 2.0, "refused_share": 0.5}
        return row.model_copy(update=fields)

    rows = [measured(mode, mbit) for mode in ("disco", "dssd", "dsd") for mbit in (1, 5, 10, 100)]
    found = {crossing.mode: crossing for crossing in crossings(rows, 49_152)}
    assert found["dssd"].predicted_mbit_per_s == pytest.approx(98_304 * 8e-6 / 0.002)
    assert found["dsd"].predicted_mbit_per_s == pytest.approx(4 * 98_304 * 8e-6 / 0.001)
    for crossing in found.values():
        assert crossing.replica_ms == 2
        assert crossing.observed_mbit_per_s == pytest.approx(crossing.predicted_mbit_per_s)
    assert not crossings([row], 49_152)
