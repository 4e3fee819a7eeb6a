"""Parts of sentences: times, sizes, names. Pure, and translated by the function given in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import assert_never

from engine.localapi.chats import Ending
from engine.localapi.schema import Progress

Tr = Callable[[str], str]


def model_name(model: str) -> str:
    """The part of a model's name that people say: no owner, folder or content hash."""
    return model.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1].split("@", 1)[0] or model


def ending_note(ending: Ending | None, tr: Tr) -> str:
    """What to write under an answer that did not end by itself; empty otherwise."""
    match ending:
        case Ending.STOPPED:
            return tr("Stopped")
        case Ending.LENGTH:
            return tr("Cut off: the answer reached its length limit")
        case Ending.FAILED:
            return tr("Broken off")
        case Ending.INTERRUPTED:
            return tr("Interrupted: Shoal ended meanwhile")
        case Ending.COMPLETE | None:
            return ""
        case _:
            assert_never(ending)


def end_of_pause(until_unix_s: float | None, now: datetime, tr: Tr) -> str:
    """`until you resume`, `until 18:30 (25 min left)`, `until Mon 3 Feb, 07:00 (2 d left)`."""
    if until_unix_s is None:
        return tr("until you resume")
    end = datetime.fromtimestamp(until_unix_s, tz=now.tzinfo)
    left = _duration(end - now, tr)
    if end.date() == now.date():
        moment = f"{end:%H:%M}"
    elif end.date() == (now + timedelta(days=1)).date():
        moment = tr("tomorrow {time}").format(time=f"{end:%H:%M}")
    else:
        moment = f"{end:%a} {end.day} {end:%b}, {end:%H:%M}"
    return tr("until {moment} ({left} left)").format(moment=moment, left=left)


def day_words(unix_s: float, now: datetime, tr: Tr) -> str:
    """`18:30`, `yesterday`, `Mon`, `3 Feb`, `3 Feb 2025`: the farther, the less exact."""
    moment = datetime.fromtimestamp(unix_s, tz=now.tzinfo)
    days = (now.date() - moment.date()).days
    if days <= 0:
        return f"{moment:%H:%M}"
    if days == 1:
        return tr("yesterday")
    if days < 7:
        return f"{moment:%A}"
    year = "" if moment.year == now.year else f" {moment.year}"
    return f"{moment.day} {moment:%b}{year}"


def progress_words(progress: Progress) -> str:
    """`Downloading SmolLM2-135M-Instruct: 42 % of 138 MB`."""
    if progress.total <= 0:
        return f"{progress.what}…"
    share = f"{progress.what}: {100 * share_of(progress):.0f} %"
    return f"{share} of {size(progress.total)}" if progress.unit == "bytes" else share


def share_of(progress: Progress) -> float:
    """How much is done, 0 to 1; `total` must be known."""
    return min(max(progress.done / progress.total, 0.0), 1.0)


def _duration(left: timedelta, tr: Tr) -> str:
    minutes = max(int(left.total_seconds() + 59) // 60, 0)
    if minutes < 60:
        return tr("{n} min").format(n=minutes)
    if minutes < 48 * 60:
        hours, rest = divmod(minutes, 60)
        text = tr("{n} h").format(n=hours)
        return f"{text} {tr('{n} min').format(n=rest)}" if rest else text
    return tr("{n} d").format(n=minutes // (24 * 60))


def milliseconds(ms: float) -> str:
    """`0.4 ms`, `38 ms`, `1.2 s`."""
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def bits_per_s(bytes_per_s: float) -> str:
    """`8.2 Mbit/s`: a rate in the units of a line's label."""
    value = 8 * bytes_per_s / 1000
    for unit in ("kbit/s", "Mbit/s"):
        if value < 1000:
            return f"{value:.0f} {unit}" if value >= 10 or value == 0 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} Gbit/s"


def size(count: float) -> str:
    """`412 MB`: bytes in the units of a disk's label."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
