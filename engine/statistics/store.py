"""The tables of the past: steps of three lengths, each kept for its range, and a row per day.

A sample is added to the step of every length in which it falls: sums add up, and means are weighted
by the seconds that were seen. So nothing is ever computed again, and the tables stay bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from sqlite3 import Connection, Row
from typing import Final

from engine.localapi.statistics import Range, Statistics, StatisticsSample, StatisticsTotals

STEP_S: Final = {Range.HOUR: 10, Range.DAY: 300, Range.WEEK: 1800}
KEPT_S: Final = {Range.HOUR: 3600, Range.DAY: 86400, Range.WEEK: 7 * 86400}

_SUMS: Final = ("tokens_served", "tokens_used", "sent_bytes", "received_bytes")
_MEANS: Final = ("ram_bytes", "gpu_memory_bytes", "gpu_busy_share", "gpu_c")
_COLUMNS: Final = ("seconds", *_SUMS, *_MEANS)


@dataclass(frozen=True, slots=True)
class Sample:
    """What went by in some seconds that end at `unix_s`, and what was there."""

    unix_s: float
    seconds: float
    tokens_served: int
    tokens_used: int
    sent_bytes: int
    received_bytes: int
    ram_bytes: int
    gpu_memory_bytes: int | None = None
    gpu_busy_share: float | None = None
    gpu_c: float | None = None


def add(connection: Connection, samples: list[Sample]) -> None:
    """Add samples, and forget what is older than its range."""
    for sample in samples:
        values = [getattr(sample, name) for name in _COLUMNS]
        for step_s in STEP_S.values():
            began_unix_s = int(sample.unix_s // step_s) * step_s
            connection.execute(_ADD, [step_s, began_unix_s, *values])
        connection.execute(_ADD_DAY, [_day(sample.unix_s), *values[1 : 1 + len(_SUMS)]])
    if samples:
        newest_unix_s = max(sample.unix_s for sample in samples)
        for span, step_s in STEP_S.items():
            connection.execute(
                "DELETE FROM statistics_steps WHERE step_s = ? AND unix_s < ?",
                (step_s, newest_unix_s - KEPT_S[span] - step_s),
            )


def read(connection: Connection, span: Range, unix_s: float) -> Statistics:
    """The steps of a range that ends now, and the totals."""
    rows = connection.execute(
        "SELECT * FROM statistics_steps WHERE step_s = ? AND unix_s > ? ORDER BY unix_s",
        (STEP_S[span], unix_s - KEPT_S[span] - STEP_S[span]),
    ).fetchall()
    return Statistics(
        range=span,
        step_s=STEP_S[span],
        samples=tuple(map(_sample, rows)),
        today=_totals(connection, "WHERE day = ?", (_day(unix_s),)),
        all=_totals(connection, "", ()),
    )


def _sample(row: Row) -> StatisticsSample:
    whole = {"ram_bytes", "gpu_memory_bytes"}
    return StatisticsSample(
        unix_s=row["unix_s"],
        **{
            name: round(row[name]) if name in whole and row[name] is not None else row[name]
            for name in _COLUMNS
        },
    )


def _totals(connection: Connection, where: str, values: tuple[str, ...]) -> StatisticsTotals:
    sums = ", ".join(f"COALESCE(SUM({name}), 0) AS {name}" for name in _SUMS)
    row = connection.execute(f"SELECT {sums} FROM statistics_days {where}", values).fetchone()  # noqa: S608 - names of our own
    return StatisticsTotals(**dict(row))


def _day(unix_s: float) -> str:
    """The person's day."""
    return f"{datetime.fromtimestamp(unix_s, tz=UTC).astimezone():%Y-%m-%d}"


def _mean(name: str) -> str:
    # What nobody could tell leaves the mean of the others as it is.
    return (
        f"{name} = CASE WHEN excluded.{name} IS NULL THEN {name} WHEN {name} IS NULL "
        f"THEN excluded.{name} ELSE ({name} * seconds + excluded.{name} * excluded.seconds) "
        "/ (seconds + excluded.seconds) END"
    )


_ADD: Final = (
    f"INSERT INTO statistics_steps (step_s, unix_s, {', '.join(_COLUMNS)}) "  # noqa: S608
    f"VALUES ({', '.join('?' * (2 + len(_COLUMNS)))}) ON CONFLICT DO UPDATE SET "
    + ", ".join(
        [f"{name} = {name} + excluded.{name}" for name in ("seconds", *_SUMS)]
        + [_mean(name) for name in _MEANS]
    )
)
_ADD_DAY: Final = (
    f"INSERT INTO statistics_days (day, {', '.join(_SUMS)}) "  # noqa: S608
    f"VALUES ({', '.join('?' * (1 + len(_SUMS)))}) ON CONFLICT DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)
)
