"""What the app knows of the engine's history, log and diagnostics. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from app.past_messages import (
    ArchiveTold,
    LogArrived,
    LogFailed,
    PastMessage,
    PreviewArrived,
    PreviewFailed,
    RangeChosen,
    StatisticsArrived,
    StatisticsFailed,
)
from engine.localapi.statistics import DiagnosticsPreview, Range, Statistics


@dataclass(frozen=True, slots=True)
class Past:
    """What has arrived; errors are sentences, empty while there is none."""

    range: Range = Range.HOUR
    statistics: Statistics | None = None
    """Of the chosen range, or of the former one until the new one arrives."""
    statistics_error: str = ""
    log: tuple[str, ...] | None = None
    log_error: str = ""
    preview: DiagnosticsPreview | None = None
    preview_error: str = ""
    archive_note: str = ""
    """What became of the archive that was wanted last."""


def apply_to_past(past: Past, message: PastMessage) -> Past:
    """The history after `message`."""
    match message:
        case RangeChosen(span):
            return replace(past, range=span, statistics_error="")
        case StatisticsArrived(statistics):
            if statistics.range is not past.range:
                return past  # asked before the person chose another
            return replace(past, statistics=statistics, statistics_error="")
        case StatisticsFailed(text):
            return replace(past, statistics_error=text)
        case LogArrived(lines):
            return replace(past, log=lines, log_error="")
        case LogFailed(text):
            return replace(past, log_error=text)
        case PreviewArrived(preview):
            return replace(past, preview=preview, preview_error="")
        case PreviewFailed(text):
            return replace(past, preview_error=text)
        case ArchiveTold(text):
            return replace(past, archive_note=text)
        case _:
            assert_never(message)
