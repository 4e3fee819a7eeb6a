from __future__ import annotations

import pytest

from engine.client.stopwatch import WINDOW, Stopwatch
from engine.core.ids import SessionId

ONE, TWO = SessionId(1), SessionId(2)


class HandClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def unix_s(self) -> float:
        return self.now_s


class Watched:
    """A stopwatch, and what it has reported."""

    def __init__(self, *sessions: SessionId) -> None:
        self.clock = HandClock()
        self.reports: list[tuple[int, float]] = []
        self.watch = Stopwatch(sessions, self.clock, lambda *report: self.reports.append(report))

    def token(self, session: SessionId, after_s: float, *, is_last: bool = False) -> None:
        self.clock.now_s += after_s
        self.watch.arrived(session, is_last=is_last)


def test_steps_are_measured_without_the_prompt_and_one_that_all_waited_for() -> None:
    one = Watched(ONE)
    one.token(ONE, 30.0)
    for step in range(WINDOW):
        one.token(ONE, 9.0 if step == 3 else 0.1)
    assert one.reports == [(1, pytest.approx(0.1))]


def test_tokens_that_come_in_bursts_are_not_taken_for_a_fast_route() -> None:
    one = Watched(ONE)
    one.token(ONE, 1.0)
    for step in range(WINDOW):
        one.token(ONE, 0.0 if step % 3 else 0.3)
    assert one.reports[0][1] > 0.07


def test_nothing_counts_while_another_row_still_waits_for_its_first_token() -> None:
    both = Watched(ONE, TWO)
    for _ in range(3 * WINDOW):
        both.token(ONE, 5.0)
    assert both.reports == []
    for _ in range(WINDOW + 1):
        both.token(TWO, 0.1)
        both.token(ONE, 0.1)
    rows, step_s = both.reports[0]
    assert (rows, step_s) == (2, pytest.approx(0.2))


def test_measurement_begins_anew_with_the_rows_that_are_left() -> None:
    both = Watched(ONE, TWO)
    for _ in range(WINDOW):
        both.token(ONE, 0.1)
        both.token(TWO, 0.1)
    both.token(TWO, 0.1, is_last=True)
    for _ in range(WINDOW):
        both.token(ONE, 0.3)
    assert both.reports == [(1, pytest.approx(0.3))]
