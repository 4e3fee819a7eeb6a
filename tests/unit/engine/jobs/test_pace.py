"""How fast, how long yet, and how many at once."""

from __future__ import annotations

from random import Random

import pytest

from engine.jobs.pace import RATE_WINDOW_S, Hold, Pace, Width


def test_the_rate_is_that_of_the_last_seconds():
    pace = Pace()
    for tenth in range(300):
        pace.token(tenth / 10, 2 if tenth < 150 else 6)
    assert pace.tokens_per_s(29.9) == pytest.approx(60, rel=0.05)
    assert pace.tokens_per_s(29.9 + 2 * RATE_WINDOW_S) == 0


def test_the_rest_is_unknown_until_some_rows_have_ended():
    pace = Pace()
    assert pace.eta_s(100) is None
    for second in range(10):
        pace.row_ended(second)
    assert pace.eta_s(100) == (100, 100)
    assert pace.eta_s(0) is None


@pytest.mark.parametrize("left_rows", [10, 1000])
def test_the_range_holds_what_really_comes_most_of_the_time(left_rows):
    random = Random(7)
    held = 0
    for _ in range(200):
        pace, now_s = Pace(), 0.0
        for _ in range(60):
            now_s += random.expovariate(1)
            pace.row_ended(now_s)
        low_s, high_s = pace.eta_s(left_rows)
        held += low_s <= sum(random.expovariate(1) for _ in range(left_rows)) <= high_s
    assert held >= 180


def test_rows_at_once_grow_with_success_and_halve_without_room():
    width = Width(64)
    for _ in range(200):
        width.row_ended()
    assert width.rows == 64
    width.no_room()
    assert width.rows == 32


def test_a_row_waits_while_its_room_would_be_a_chats():
    width = Width(8)
    assert width.may_start(3, row_tokens=100, free_tokens=200)
    assert not width.may_start(3, row_tokens=100, free_tokens=199)
    assert not width.may_start(4, row_tokens=1, free_tokens=10_000)
    assert width.may_start(0, row_tokens=100, free_tokens=0)  # alone it may try


def test_waits_grow_with_each_trouble_and_end_with_the_first_answer():
    hold = Hold(1, 30)
    now_s, waits = 0.0, []
    for _ in range(7):
        hold.failed("No room.", now_s, has_way=True)
        hold.failed("No room.", now_s, has_way=True)  # another row, the same trouble
        since_s = now_s
        while hold.holds(now_s, has_way=True):
            now_s += 0.5
        waits.append(now_s - since_s)
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert hold.reason == "No room."
    hold.got_on()
    assert hold.reason == ""
    assert not hold.holds(now_s, has_way=True)


def test_a_wait_for_stages_ends_when_they_are_there():
    hold = Hold(1, 30)
    hold.failed("Nobody holds block 3.", 0, has_way=False)
    assert hold.holds(0.5, has_way=False)
    assert not hold.holds(0.5, has_way=True)
