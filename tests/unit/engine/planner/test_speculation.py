from __future__ import annotations

import math

import pytest

from engine.planner.speculation import break_even_bytes_per_s

TOKENS, BATCH, TREE, KEPT, TOKEN_BYTES = 100, 8, 12.0, 3.0, 8192.0
RTT_S, COMPUTE_S, RATIO, DRAFT_S, STAGES = 0.05, 0.04, 1.5, 0.02, 3


def plain_s(bytes_per_s: float) -> float:
    """[BB] eq. 5."""
    return TOKENS * STAGES * (COMPUTE_S + BATCH * TOKEN_BYTES / bytes_per_s + RTT_S)


def drafted_s(bytes_per_s: float) -> float:
    """[BB] eq. 6."""
    hop_s = BATCH * TREE * TOKEN_BYTES / bytes_per_s + RTT_S
    return TOKENS / KEPT * (DRAFT_S + STAGES * (RATIO * COMPUTE_S + hop_s))


def break_even(kept: float = KEPT, draft_s: float = DRAFT_S) -> float:
    return break_even_bytes_per_s(
        BATCH, TREE, kept, TOKEN_BYTES, RTT_S, COMPUTE_S, RATIO, draft_s / STAGES
    )


def test_drafting_pays_from_the_break_even_line_on():
    line = break_even()
    assert drafted_s(line) == pytest.approx(plain_s(line))
    assert drafted_s(2 * line) < plain_s(2 * line)
    assert drafted_s(line / 2) > plain_s(line / 2)


def test_draft_that_takes_longer_than_it_saves_pays_on_no_line():
    assert break_even(draft_s=10.0) == math.inf


def test_tree_of_which_all_is_kept_pays_on_every_line():
    assert break_even(kept=TREE) == 0
