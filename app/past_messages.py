"""What can happen to the dashboard's history, log and diagnostics. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.localapi.statistics import DiagnosticsPreview, Range, Statistics


@dataclass(frozen=True, slots=True)
class RangeChosen:
    """The person wants to look back so far."""

    range: Range


@dataclass(frozen=True, slots=True)
class StatisticsArrived:
    """Samples of a range, and totals."""

    statistics: Statistics


@dataclass(frozen=True, slots=True)
class StatisticsFailed:
    """They did not come."""

    message: str


@dataclass(frozen=True, slots=True)
class LogArrived:
    """The newest lines of the log."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFailed:
    """They did not come."""

    message: str


@dataclass(frozen=True, slots=True)
class PreviewArrived:
    """What the diagnostics archive would hold."""

    preview: DiagnosticsPreview


@dataclass(frozen=True, slots=True)
class PreviewFailed:
    """It did not come."""

    message: str


@dataclass(frozen=True, slots=True)
class ArchiveTold:
    """The archive was saved, or was not: a sentence."""

    message: str


PastMessage = (
    RangeChosen
    | StatisticsArrived
    | StatisticsFailed
    | LogArrived
    | LogFailed
    | PreviewArrived
    | PreviewFailed
    | ArchiveTold
)
