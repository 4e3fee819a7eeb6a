from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.profiler.budget import TimeBudget


@given(
    budget_s=st.floats(0.1, 100),
    wanted_s=st.lists(st.floats(0, 200), min_size=1, max_size=10),
    late_s=st.floats(0, 50),
)
def test_lines_together_take_no_longer_than_the_budget_whatever_each_would(
    budget_s, wanted_s, late_s
):
    now_s = 1000.0
    budget = TimeBudget(now_s, budget_s)
    now_s += late_s
    for index, wants_s in enumerate(wanted_s):
        now_s = min(now_s + wants_s, budget.until_s(now_s, len(wanted_s) - index))
    assert now_s <= 1000.0 + max(budget_s, late_s) + 1e-6


def test_what_a_line_leaves_goes_to_those_that_follow():
    budget = TimeBudget(0.0, 9.0)
    assert budget.until_s(0.0, 3) == pytest.approx(3.0)
    assert budget.until_s(1.0, 2) == pytest.approx(5.0)
    assert budget.until_s(5.0, 1) == pytest.approx(9.0)
    assert budget.until_s(12.0, 1) == pytest.approx(12.0), "nothing is left"
