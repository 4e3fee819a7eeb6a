"""Parts of sentences: numbers, times, sizes, names. Pure, and translated by the function given in.

That function is all that these texts know of the language: it turns `en` into the language's code,
by which numbers, days and plural forms are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import assert_never

from app.locales import LOCALES, Locale
from engine.localapi.chats import Ending
from engine.localapi.said import Said
from engine.localapi.schema import Progress

Tr = Callable[[str], str]
"""An English text in the person's language; English itself where there is no translation."""


def locale(tr: Tr) -> Locale:
    """The habits of the language that `tr` speaks."""
    return LOCALES[tr("en")]


def number(value: float, tr: Tr, decimals: int = 0) -> str:
    """`1,234.5`: a number as the language writes it."""
    habits = locale(tr)
    whole, _, rest = f"{value:,.{decimals}f}".partition(".")
    whole = whole.replace(",", habits.group_separator)
    return f"{whole}{habits.decimal_point}{rest}" if rest else whole


def counted(count: int, forms: str, tr: Tr, **values: object) -> str:
    """Choose the plural form that goes with `count`, and fill it in.

    Args:
        count: Goes to `{n}`.
        forms: A translated text like `{n} token|{n} tokens`, with as many forms as the language has.
        tr: Tells the language.
        values: Go to other places of the text.
    """
    offered = forms.split("|")
    form = offered[min(locale(tr).plural_form(count), len(offered) - 1)]
    return form.format(n=number(count, tr), **values)


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
        moment = clock_time(end)
    elif end.date() == (now + timedelta(days=1)).date():
        moment = tr("tomorrow {time}").format(time=clock_time(end))
    else:
        moment = tr("{weekday} {date}, {time}").format(
            weekday=short_weekday(end, tr), date=_date(end, tr), time=clock_time(end)
        )
    return tr("until {moment} ({left} left)").format(moment=moment, left=left)


def day_words(unix_s: float, now: datetime, tr: Tr) -> str:
    """`18:30`, `yesterday`, `Monday`, `3 Feb`, `3 Feb 2025`: the farther, the less exact."""
    moment = datetime.fromtimestamp(unix_s, tz=now.tzinfo)
    days = (now.date() - moment.date()).days
    if days <= 0:
        return clock_time(moment)
    if days == 1:
        return tr("yesterday")
    if days < 7:
        return locale(tr).weekdays[moment.weekday()]
    date = _date(moment, tr)
    return date if moment.year == now.year else f"{date} {moment.year}"


def clock_time(moment: datetime) -> str:
    """`18:30`."""
    return f"{moment:%H:%M}"


def short_weekday(moment: datetime, tr: Tr) -> str:
    """`Mon`."""
    return locale(tr).short_weekdays[moment.weekday()]


def _date(moment: datetime, tr: Tr) -> str:
    month = locale(tr).short_months[moment.month - 1]
    return tr("{day} {month}").format(day=moment.day, month=month)


def in_words(said: Sequence[Said], english: str, tr: Tr) -> str:
    """What the engine has said, in the person's language; in English where that is not known."""
    if tr("en") == "en":
        return english
    texts = [tr(part.text) for part in said]
    if any(text == part.text for text, part in zip(texts, said, strict=True)):
        return english
    sentences = (text.format(**_shown(part, tr)) for text, part in zip(texts, said, strict=True))
    return " ".join(sentences) or english


def _shown(part: Said, tr: Tr) -> dict[str, str]:
    """The values of a sentence, as the language writes them."""
    return {name: _value(name, value, tr) for name, value in part.values.items()}


def _value(name: str, value: str | float, tr: Tr) -> str:
    if isinstance(value, str):
        return value
    if name.endswith("_bytes"):
        return size(value, tr)
    return number(value, tr, 0 if value == int(value) else 1)


def progress_words(progress: Progress, tr: Tr) -> str:
    """`Downloading SmolLM2-135M-Instruct: 42 % of 138 MB`."""
    what = in_words(progress.said, progress.what, tr)
    if progress.total <= 0:
        return f"{what}…"
    text = tr("{what}: {share} of {size}") if progress.unit == "bytes" else tr("{what}: {share}")
    return text.format(
        what=what, share=percent(share_of(progress), tr), size=size(progress.total, tr)
    )


def share_of(progress: Progress) -> float:
    """How much is done, 0 to 1; `total` must be known."""
    return min(max(progress.done / progress.total, 0.0), 1.0)


def percent(share: float, tr: Tr) -> str:
    """`42 %`."""
    return f"{number(100 * share, tr)} %"


def _duration(left: timedelta, tr: Tr) -> str:
    minutes = max(int(left.total_seconds() + 59) // 60, 0)
    if minutes < 60:
        return tr("{n} min").format(n=minutes)
    if minutes < 48 * 60:
        hours, rest = divmod(minutes, 60)
        text = tr("{n} h").format(n=hours)
        return f"{text} {tr('{n} min').format(n=rest)}" if rest else text
    return tr("{n} d").format(n=minutes // (24 * 60))


def milliseconds(ms: float, tr: Tr) -> str:
    """`0.4 ms`, `38 ms`, `1.2 s`."""
    if ms >= 1000:
        return f"{number(ms / 1000, tr, 1)} s"
    return f"{number(ms, tr, 0 if ms >= 10 else 1)} ms"


def bits_per_s(bytes_per_s: float, tr: Tr) -> str:
    """`8.2 Mbit/s`: a rate in the units of a line's label."""
    value = 8 * bytes_per_s / 1000
    for unit in ("kbit/s", "Mbit/s"):
        if value < 1000:
            return f"{number(value, tr, 0 if value >= 10 or value == 0 else 1)} {unit}"
        value /= 1000
    return f"{number(value, tr, 1)} Gbit/s"


def size(count: float, tr: Tr) -> str:
    """`412 MB`: bytes in the units of a disk's label."""
    value = float(count)
    for at, text in enumerate((tr("{n} B"), tr("{n} KB"), tr("{n} MB"), tr("{n} GB"))):
        if value < 1000:
            whole = value >= 10 or at == 0
            return text.format(n=number(value, tr, 0 if whole else 1))
        value /= 1000
    return tr("{n} TB").format(n=number(value, tr, 1))
