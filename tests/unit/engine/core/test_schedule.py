from datetime import UTC, datetime

import pytest

from engine.core.schedule import WeeklySchedule

MONDAY = datetime(2026, 11, 30, tzinfo=UTC)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return MONDAY.replace(
        day=30 if day == 0 else day, month=11 if day == 0 else 12, hour=hour, minute=minute
    )


@pytest.mark.parametrize(
    ("lines", "when", "is_open"),
    [
        ([], at(0, 3), True),
        (["mon-fri 18:00-08:00"], at(0, 7, 59), False),  # Sunday's night is not in the schedule
        (["mon-fri 18:00-08:00"], at(0, 18), True),
        (["mon-fri 18:00-08:00"], at(1, 7, 59), True),
        (["mon-fri 18:00-08:00"], at(1, 8), False),
        (["mon-fri 18:00-08:00"], at(5, 7), True),  # Friday's night, on Saturday
        (["mon-fri 18:00-08:00"], at(5, 9), False),
        (["sat,sun"], at(6, 23, 59), True),
        (["sun 22:00-06:00"], at(0, 5), True),  # over the end of the week
        (["fri-mon 10:00-11:00"], at(6, 10, 30), True),
        (["fri-mon 10:00-11:00"], at(1, 10, 30), False),
        (["daily 00:00-24:00"], at(3, 12), True),
        (["mon 09:00-10:00", "mon 12:00-13:00"], at(0, 12, 30), True),
    ],
)
def test_a_schedule_is_open_in_its_hours_alone(lines, when, is_open):
    assert WeeklySchedule.parse(lines).is_open(when) is is_open


def test_the_next_opening_is_told():
    schedule = WeeklySchedule.parse(["mon-fri 18:00-08:00", "sun 10:00-12:00"])
    assert schedule.next_opening(at(0, 9, 30)) == at(0, 18)
    assert schedule.next_opening(at(5, 9)) == at(6, 10)
    assert schedule.next_opening(at(6, 13)) == datetime(2026, 12, 7, 18, tzinfo=UTC)
    assert WeeklySchedule().next_opening(at(0, 1)) is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "mo 10:00-11:00",
        "mon 10-11",
        "mon 10:00-10:00",
        "mon 25:00-26:00",
        "mon 10:60-11:00",
        "mon-",
    ],
)
def test_a_line_of_another_form_is_refused_by_name(line):
    with pytest.raises(ValueError, match=r"does not|do not"):
        WeeklySchedule.parse([line])
