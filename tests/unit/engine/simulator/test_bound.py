from __future__ import annotations

import pytest

from engine.simulator.bound import LeastBlockBound


def test_machine_that_holds_all_blocks_gives_each_its_rate() -> None:
    assert LeastBlockBound(10).tokens_per_s([(10, 30.0)]) == pytest.approx(30)


def test_two_halves_are_as_fast_as_the_slower_one() -> None:
    bound = LeastBlockBound(10)
    assert bound.tokens_per_s([(5, 20.0), (5, 40.0)]) == pytest.approx(30)  # cut into pieces
    assert bound.tokens_per_s([(5, 20.0), (10, 1.0)]) == pytest.approx(11)


def test_blocks_that_nobody_can_hold_are_not_served() -> None:
    bound = LeastBlockBound(10)
    assert bound.tokens_per_s([]) == 0
    assert bound.tokens_per_s([(9, 1.0)]) == pytest.approx(0.5), "pieces of it, at two places"
