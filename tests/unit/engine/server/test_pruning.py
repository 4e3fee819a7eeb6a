from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.protocol.frames import Dtype
from engine.protocol.rows import Row, RowFlags
from engine.server.pruner_facts import Level, PrunerFacts
from engine.server.pruning import Pruning
from engine.server.scheduler import Work

NEXT = PeerId("next")
LEVELS = (Level(0.02, 0.6, 0.95), Level(0.1, 0.3, 0.7))
DRAFTED = 13
TREE = (-1, -1, -1, 0, 0, 1, 3, 3, 4, 6, 6, 9, 9)
TREE_S = 0.0005


@dataclass
class Known:
    """What of a session is asked."""

    prune_threshold: float | None = None
    is_last: bool = False
    next_peer: PeerId = NEXT


def pruning(
    link_token_s: float, known: Known | None = None, depths: tuple[int, ...] = (10,)
) -> Pruning:
    facts = [PrunerFacts(depth, TREE_S, LEVELS) for depth in depths]
    session = known or Known()
    return Pruning(facts, lambda _: session, lambda _: link_token_s)  # type: ignore[arg-type]


def work(
    position: int,
    drafted: int = DRAFTED,
    now_s: float = 0.0,
    blocks: int = 10,
    parents: tuple[int, ...] = (),
) -> Work:
    row = Row(SessionId(1), position, 1 + drafted, 0, RowFlags.SAMPLE, parents or TREE[:drafted])
    ids = np.zeros(row.count, np.int32)
    return Work((NEXT, 1), Span(0, blocks), row, ids, (), Dtype.NONE, 0, now_s)


def after_rounds(chooser: Pruning, committed: int, round_s: float, number: int = 6) -> list[float]:
    """What is chosen for the row after some rounds that nothing was left out of."""
    for turn in range(number + 1):
        last = work(100 + committed * turn, now_s=turn * round_s)
        chooser.arrived(last)
    return chooser.thresholds([last])


def test_on_a_slow_link_what_hardly_counts_is_left_out() -> None:
    # Each token takes 20 ms of a round of 500 ms.
    assert after_rounds(pruning(0.02), committed=2, round_s=0.5) == [0.1]


def test_where_most_drafted_tokens_are_right_less_is_left_out_or_nothing() -> None:
    assert after_rounds(pruning(0.008), committed=6, round_s=0.5) == [0.02]
    assert after_rounds(pruning(0.003), committed=12, round_s=0.5) == [0.0]


@pytest.mark.parametrize("link_token_s", [0.0, 1e-6, 1e-4])
def test_on_a_fast_link_or_one_that_nobody_has_measured_everything_is_sent(
    link_token_s: float,
) -> None:
    assert after_rounds(pruning(link_token_s), committed=2, round_s=0.05) == [0.0]


def test_judging_that_takes_longer_than_it_saves_is_stopped() -> None:
    chooser = pruning(0.004)
    assert after_rounds(chooser, committed=2, round_s=0.3) != [0.0]
    for _ in range(30):
        chooser.judged([work(0)], 0.2)
    assert after_rounds(chooser, committed=2, round_s=0.3) == [0.0]


def test_chains_are_sent_whole_whatever_is_asked_for() -> None:
    chooser = pruning(0.02)
    assert after_rounds(chooser, committed=2, round_s=0.5) == [0.1]
    chain = work(112, parents=tuple(range(-1, DRAFTED - 1)))
    assert chooser.thresholds([chain]) == [0.0]
    assert pruning(0.0, Known(0.3)).thresholds([chain]) == [0.0]


def test_nothing_is_pruned_before_a_sequence_has_shown_how_it_goes() -> None:
    assert after_rounds(pruning(0.02), committed=2, round_s=0.5, number=1) == [0.0]


def test_rows_that_came_together_are_no_rounds() -> None:
    assert after_rounds(pruning(0.02), committed=2, round_s=0.0) == [0.0]


def test_what_a_client_asks_for_is_done_at_once_if_it_can_be() -> None:
    assert pruning(0.0, Known(prune_threshold=0.3)).thresholds([work(5)]) == [0.3]
    assert after_rounds(pruning(0.02, Known(prune_threshold=0.0)), 2, 0.5) == [0.0]
    assert pruning(0.0, Known(0.3, is_last=True)).thresholds([work(5)]) == [0.0]
    assert pruning(0.0, Known(0.3)).thresholds([work(5), work(5, 0)]) == [0.3, 0.0]


def test_a_stage_with_fewer_blocks_than_any_pruner_needs_sends_everything() -> None:
    chooser = pruning(0.02, Known(0.3), depths=(10, 20))
    assert chooser.thresholds([work(5, blocks=9)]) == []
    assert chooser.thresholds([work(5, blocks=14)]) == [0.3]
    assert pruning(0.02, Known(0.3), depths=()).thresholds([work(5)]) == []


def test_rounds_are_judged_as_if_nothing_had_been_left_out() -> None:
    chooser = pruning(0.02)
    assert after_rounds(chooser, committed=2, round_s=0.5) == [0.1]
    # Pruned rounds are shorter and accept less; they are no reason to change.
    saved_s = DRAFTED * 0.7 * 0.02 - TREE_S
    for turn in range(1, 10):
        now_s = 3.0 + turn * (0.5 - saved_s)
        last = work(112 + round(1.7 * turn), now_s=now_s)
        chooser.arrived(last)
        assert chooser.thresholds([last]) == [0.1]
