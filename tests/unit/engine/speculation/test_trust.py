from __future__ import annotations

import pytest

from engine.speculation.tree import TokenTree
from engine.speculation.trust import Trust


def after_rounds(*, right: bool, rounds: int = 60) -> Trust:
    trust = Trust()
    ids = [0]
    for _ in range(rounds):
        trust.expect(TokenTree.chain([7]), {7: trust.scaled(0.5)}, len(ids))
        ids.append(7 if right else 8)
        trust.learn(ids)
    return trust


def test_a_draft_is_believed_at_first() -> None:
    assert Trust().scaled(0.5) == 0.5


def test_a_draft_that_is_always_wrong_is_believed_less_and_one_that_is_right_more() -> None:
    assert after_rounds(right=False).scaled(0.5) == pytest.approx(0.1)  # the least there is
    assert 0.65 < after_rounds(right=True).scaled(0.5) <= 0.75
    assert after_rounds(right=True).scaled(0.9) == 0.99
