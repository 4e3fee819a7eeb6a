from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from app.plots import LENGTH_S, Line, axis, plot
from engine.localapi.statistics import Range

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("highest", "least", "top", "ticks"),
    [
        (0, 1, 1.0, (0, 0.5, 1)),
        (13.7, 1, 15, (0, 5, 10, 15)),
        (3.3e6, 1e5, 4e6, (0, 2e6, 4e6)),
        (30, 1, 30, (0, 10, 20, 30)),
        (101, 100, 150, (0, 50, 100, 150)),
        (7e9, 1e9, 7.5e9, (0, 2.5e9, 5e9, 7.5e9)),
        (0.002, 0.001, 0.002, (0, 0.001, 0.002)),
    ],
)
def test_axis_ends_at_a_round_value_above_all(
    highest: float, least: float, top: float, ticks: tuple[float, ...]
) -> None:
    found_top, found_ticks = axis(highest, least)
    assert found_top == pytest.approx(top)
    assert found_ticks == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("span", "marks"),
    [
        (Range.HOUR, ["17:15", "17:30", "17:45", "18:00"]),
        (Range.DAY, ["00:00", "06:00", "12:00", "18:00"]),
        (Range.WEEK, ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]),
    ],
)
def test_marks_of_time_are_round_moments_of_the_local_clock(span: Range, marks: list[str]) -> None:
    view = plot(
        "",
        [],
        span=span,
        now=NOW,
        words=lambda value, tr: str(value),
        least_top=1,
        empty="",
        tr=str,
    )
    assert [text for _, text in view.times] == marks
    assert all(view.start_unix_s <= at <= view.end_unix_s for at, _ in view.times)
    assert view.end_unix_s - view.start_unix_s == LENGTH_S[span]


def test_plot_without_a_value_says_why() -> None:
    at = NOW.timestamp() - 60
    for points, empty in ((((at, 0.0),), ""), (((at, None),), "None yet."), ((), "None yet.")):
        view = plot(
            "Load", [Line("", points)], span=Range.HOUR, now=NOW, words=lambda value, tr: str(value), least_top=1,
            empty="None yet.", tr=str,
        )  # fmt: skip
        assert view.empty == empty
