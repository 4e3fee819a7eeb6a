"""Hours of the week, as a person writes them: `mon-fri 18:00-08:00`, `sat,sun`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class WeeklySchedule:
    """When something is allowed; without any hours, always."""

    hours: tuple[tuple[int, int], ...] = ()
    """`[start, end)` in minutes since Monday 00:00. An end beyond the week goes on on Monday."""

    @classmethod
    def parse(cls, lines: Sequence[str]) -> WeeklySchedule:
        """Read lines of days and, unless the whole day is meant, hours.

        Days are `mon` to `sun`, `daily`, lists (`sat,sun`) and ranges (`mon-fri`). Hours that end
        before they begin go over midnight and belong to the day on which they begin.

        Raises:
            ValueError: A line is of another form; the text says which.
        """
        return cls(tuple(hours for line in lines for hours in _parse(line)))

    def is_open(self, local: datetime) -> bool:
        """Whether it is allowed at this wall-clock time."""
        return not self.hours or any(self._within(_minute(local), hours) for hours in self.hours)

    def next_opening(self, local: datetime) -> datetime | None:
        """The wall-clock time of the next opening after `local`; None if there is no schedule."""
        if not self.hours:
            return None
        now = _minute(local)
        away = min((start - now) % _WEEK_MINUTES or _WEEK_MINUTES for start, _ in self.hours)
        return local.replace(second=0, microsecond=0) + timedelta(minutes=away)

    @staticmethod
    def _within(minute: int, hours: tuple[int, int]) -> bool:
        start, end = hours
        return start <= minute < end or start <= minute + _WEEK_MINUTES < end


def _minute(local: datetime) -> int:
    return local.weekday() * _DAY_MINUTES + local.hour * 60 + local.minute


def _parse(line: str) -> list[tuple[int, int]]:
    days, _, hours = line.strip().casefold().partition(" ")
    start, end = _parse_hours(hours.strip(), line)
    return [
        (day * _DAY_MINUTES + start, day * _DAY_MINUTES + end) for day in _parse_days(days, line)
    ]


def _parse_days(text: str, line: str) -> list[int]:
    if text == "daily":
        return list(range(7))
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first not in _DAYS or (dash and last not in _DAYS):
            raise ValueError(f"{line!r} does not begin with days such as mon-fri, sat,sun or daily")
        start = _DAYS.index(first)
        count = (_DAYS.index(last) - start) % 7 + 1 if dash else 1
        found += [(start + offset) % 7 for offset in range(count)]
    return found


def _parse_hours(text: str, line: str) -> tuple[int, int]:
    if not text:
        return 0, _DAY_MINUTES
    match = _HOURS.fullmatch(text)
    if match is None:
        raise ValueError(f"{line!r} does not end with hours such as 18:00-08:00")
    hours = [int(group) for group in match.groups()]
    start, end = hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]
    if max(hours[1], hours[3]) > 59 or start >= _DAY_MINUTES or end > _DAY_MINUTES or start == end:
        raise ValueError(f"{line!r} has hours that do not exist")
    return start, end if end > start else end + _DAY_MINUTES
