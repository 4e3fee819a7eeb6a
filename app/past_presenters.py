"""History as plots, and what stands where there is none. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.plots import Line, Plot, Point, plot
from app.state import AppState
from app.words import Tr, bits_per_s, number, percent, size
from engine.localapi.statistics import DiagnosticsEntry, Range, Statistics, StatisticsSample

_Value = Callable[[StatisticsSample], float | None]

SILENT_STEPS = 3
"""After so many steps without a sample the newest one is no longer what is now."""


@dataclass(frozen=True, slots=True)
class PastView:
    """What the pages of history, log and diagnostics show."""

    range: Range
    plots: tuple[Plot, ...]
    activity_note: str
    """Why the plots are missing or old; empty when they are not."""
    log: str
    log_note: str
    entries: tuple[DiagnosticsEntry, ...]
    diagnostics_note: str
    archive_note: str
    can_save: bool


def past_view(state: AppState, now: datetime, tr: Tr) -> PastView:
    """The history for the dashboard; `now` carries the local time zone."""
    past = state.past
    waiting = (
        tr("Asking the engine…")
        if state.linked
        else tr("This comes as soon as the engine answers.")
    )
    log = past.log or ()
    log_note = past.log_error or (waiting if past.log is None else "")
    if not state.linked:
        log_note = tr("The engine does not answer; what it wrote last is in the folder.")
    elif past.log == ():
        log_note = tr("The log is empty.")
    return PastView(
        range=past.range,
        plots=() if past.statistics is None else _plots(past.statistics, now, tr),
        activity_note=past.statistics_error or (waiting if past.statistics is None else ""),
        log="\n".join(log),
        log_note=log_note,
        entries=() if past.preview is None else past.preview.entries,
        diagnostics_note=past.preview_error or (waiting if past.preview is None else ""),
        archive_note=past.archive_note,
        can_save=past.preview is not None and not past.preview_error and state.linked,
    )


def _plots(statistics: Statistics, now: datetime, tr: Tr) -> tuple[Plot, ...]:
    def drawn(
        title: str,
        words: Callable[[float, Tr], str],
        least_top: float,
        *lines: tuple[str, _Value],
        empty: str = "",
    ) -> Plot:
        return plot(
            title,
            [Line(name, _points(statistics, value, now)) for name, value in lines],
            span=statistics.range,
            now=now,
            words=words,
            least_top=least_top,
            empty=empty or tr("Nothing was recorded in this time."),
            tr=tr,
        )

    no_gpu = tr("Nothing was read from a GPU in this time.")
    return (
        drawn(
            tr("Tokens"), _tokens_per_s, 2,
            (tr("served"), lambda one: _rate(one.tokens_served, one)),
            (tr("used"), lambda one: _rate(one.tokens_used, one)),
        ),
        drawn(
            tr("Network"), _bits_per_s, 1e5,
            (tr("up"), lambda one: _rate(8 * one.sent_bytes, one)),
            (tr("down"), lambda one: _rate(8 * one.received_bytes, one)),
        ),
        drawn(tr("GPU memory"), size, 1e9, ("", lambda one: one.gpu_memory_bytes), empty=no_gpu),
        drawn(tr("Memory of Shoal"), size, 1e9, ("", lambda one: one.ram_bytes)),
        drawn(
            tr("GPU load"), percent, 1, ("", lambda one: one.gpu_busy_share), empty=no_gpu
        ),
        drawn(tr("GPU temperature"), _celsius, 100, ("", lambda one: one.gpu_c), empty=no_gpu),
    )  # fmt: skip


def _points(statistics: Statistics, value: _Value, now: datetime) -> tuple[Point, ...]:
    """One point in the middle of each step, and a gap wherever steps are missing."""
    step_s = statistics.step_s
    found: list[Point] = []
    for sample in statistics.samples:
        at = sample.unix_s + step_s / 2
        if found and at - found[-1][0] > 1.5 * step_s:
            found.append((found[-1][0] + step_s, None))
        found.append((at, value(sample)))
    if found and now.timestamp() - found[-1][0] > SILENT_STEPS * step_s:
        found.append((found[-1][0] + step_s, None))
    return tuple(found)


def _rate(amount: float, sample: StatisticsSample) -> float | None:
    return amount / sample.seconds if sample.seconds > 0 else None


def _tokens_per_s(rate: float, tr: Tr) -> str:
    decimals = 0 if rate >= 10 or rate == int(rate) else 1
    return tr("{rate} tokens/s").format(rate=number(rate, tr, decimals))


def _bits_per_s(rate: float, tr: Tr) -> str:
    return bits_per_s(rate / 8, tr)


def _celsius(degrees: float, tr: Tr) -> str:
    return f"{number(degrees, tr)} °C"


def sizes_of(entries: Sequence[DiagnosticsEntry], tr: Tr) -> tuple[str, ...]:
    """How much each file holds."""
    return tuple(size(len(entry.text.encode()), tr) for entry in entries)
