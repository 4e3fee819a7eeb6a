"""What the engine remembers of its past, for plots and totals.

| call | answer |
|---|---|
| `GET /shoal/v1/statistics?range=hour` (`day`, `week`) | `Statistics` |
| `GET /shoal/v1/log?lines=N` | `LogTail`: the newest lines of the engine's log, redacted |
| `GET /shoal/v1/diagnostics` | `DiagnosticsPreview`: what the archive would hold |
| `GET /shoal/v1/diagnostics/archive` | the archive, a zip |
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from engine.localapi.said import Said


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Range(StrEnum):
    """How far back; each has a step of its own, so that a plot has a few hundred points."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


class StatisticsSample(_Answer):
    """One step: sums of what went by, means of what was there; None where nobody could tell."""

    unix_s: int
    """When the step began."""
    seconds: float
    """How much of the step was seen; the engine may have run for a part of it."""
    tokens_served: int
    tokens_used: int
    sent_bytes: int
    received_bytes: int
    ram_bytes: int
    """Of the engine and its worker."""
    gpu_memory_bytes: int | None = None
    """In use on the GPU that the stage computes on, by anyone."""
    gpu_busy_share: float | None = None
    gpu_c: float | None = None


class StatisticsTotals(_Answer):
    """Sums."""

    tokens_served: int = 0
    tokens_used: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class Statistics(_Answer):
    """The samples of a range, oldest first, and totals."""

    range: Range
    step_s: int
    samples: tuple[StatisticsSample, ...]
    """Steps in which the engine did not run are missing."""
    today: StatisticsTotals
    all: StatisticsTotals


class LogTail(_Answer):
    """The newest lines, oldest of them first."""

    lines: tuple[str, ...]


class DiagnosticsEntry(_Answer):
    """One file of the archive."""

    name: str
    about: str
    about_said: tuple[Said, ...] = ()
    """The same for other languages; empty: there is only English."""
    text: str
    """As the archive holds it: without names, addresses, keys and paths of the person."""


class DiagnosticsPreview(_Answer):
    """All that the archive would hold."""

    entries: tuple[DiagnosticsEntry, ...]
