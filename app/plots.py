"""Plots over time as values: lines, axes and the words on them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from app.words import Tr, clock_time, short_weekday
from engine.localapi.statistics import Range

Point = tuple[float, float | None]
"""Unix time and value; None where nothing was measured."""
Words = Callable[[float, Tr], str]
LENGTH_S = {Range.HOUR: 3600.0, Range.DAY: 86_400.0, Range.WEEK: 604_800.0}


@dataclass(frozen=True, slots=True)
class Line:
    """One curve."""

    name: str
    """Empty for a curve that is alone."""
    points: tuple[Point, ...]
    """In the order of time."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One small diagram."""

    title: str
    lines: tuple[Line, ...]
    start_unix_s: float
    end_unix_s: float
    top: float
    """Value at the upper edge; the lower one is 0."""
    ticks: tuple[tuple[float, str], ...]
    """Values with a line across, and their words."""
    times: tuple[tuple[float, str], ...]
    """Moments with a mark, and their words."""
    words: Words
    """A value with its unit."""
    nothing_now: str
    """What to say where the newest value is missing."""
    empty: str
    """Why there is nothing to see; empty when there is."""


def plot(
    title: str,
    lines: Sequence[Line],
    *,
    span: Range,
    now: datetime,
    words: Words,
    least_top: float,
    empty: str,
    tr: Tr,
) -> Plot:
    """Choose axes for `lines`.

    Args:
        title: What is measured.
        lines: One or two.
        span: How far back.
        now: The right edge, with the local time zone.
        words: A value with its unit.
        least_top: The upper edge is never lower, so that noise does not look like much.
        empty: What to say when no line has a point.
        tr: Translates.
    """
    end_unix_s = now.timestamp()
    values = [value for line in lines for _, value in line.points if value is not None]
    top, ticks = axis(max(values, default=0.0), least_top)
    return Plot(
        title=title,
        lines=tuple(lines),
        start_unix_s=end_unix_s - LENGTH_S[span],
        end_unix_s=end_unix_s,
        top=top,
        ticks=tuple((tick, words(tick, tr)) for tick in ticks),
        times=_times(span, now, tr),
        words=words,
        nothing_now=tr("nothing now"),
        empty="" if values else empty,
    )


def newest(points: Sequence[Point]) -> float | None:
    """The last value; None where it is missing."""
    return points[-1][1] if points else None


def axis(highest: float, least_top: float) -> tuple[float, tuple[float, ...]]:
    """A round upper edge at or above both, and two to four round values up to it."""
    wanted = max(highest, least_top)
    size = 10.0 ** math.floor(math.log10(wanted / 2))
    step = next(size * times for times in (1, 2, 2.5, 5, 10) if wanted <= 3 * size * times)
    count = math.ceil(wanted / step - 1e-9)
    return count * step, tuple(at * step for at in range(count + 1))


def _times(span: Range, now: datetime, tr: Tr) -> tuple[tuple[float, str], ...]:
    """Full quarters of an hour, every six hours, or midnights."""
    words: Callable[[datetime], str]
    match span:
        case Range.HOUR:
            step, words = timedelta(minutes=15), clock_time
            first = now.replace(minute=now.minute // 15 * 15, second=0, microsecond=0)
        case Range.DAY:
            step, words = timedelta(hours=6), clock_time
            first = now.replace(hour=now.hour // 6 * 6, minute=0, second=0, microsecond=0)
        case Range.WEEK:
            step, words = timedelta(days=1), partial(short_weekday, tr=tr)
            first = now.replace(hour=0, minute=0, second=0, microsecond=0)
    count = round(LENGTH_S[span] / step.total_seconds())
    moments = [first - at * step for at in range(count + 1)]
    edge = now - timedelta(seconds=LENGTH_S[span])
    return tuple((at.timestamp(), words(at)) for at in reversed(moments) if at >= edge)
