"""Rates, delays and lists as people write them on the bench's command line. Pure."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.core.plans import Span

_BITS_PER_UNIT: Final = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_SECONDS_PER_UNIT: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_BYTES_PER_UNIT: Final = {"b": 1, "kb": 1 << 10, "kib": 1 << 10, "mb": 1 << 20, "mib": 1 << 20}
"""As [BB] counts volumes: 416 KB are 32 rows of 6,656 numbers of two bytes."""
_RATE_UNITS: Final = {"b": 1, "kb": 10**3, "mb": 10**6}
_STRETCHED_ROWS: Final = 16
"""So many can be computed in the usual time on the machines that we measure on."""
_NUMBER: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([a-zA-Z]*)", re.ASCII)
_MAX_CORE: Final = 4096


@dataclass(frozen=True, slots=True)
class LinkShaping:
    """What every peer's line is slowed down to."""

    rate_bytes_per_s: float
    """0: unlimited."""
    delay_s: float


@dataclass(frozen=True, slots=True)
class Emulation:
    """A large model to pretend."""

    stage_s: float
    """One pass through one stage."""
    payload_bytes: int
    """What a pass sends to the next stage."""
    rows: int | None
    """Of that pass; None: as many as the batch has."""


@dataclass(frozen=True, slots=True)
class Stretching:
    """How long things shall take, whose results are computed all the same."""

    target_s: float
    """A pass through all stages together."""
    draft_s: float
    """A place of a model's draft."""
    rows: int
    """Tokens that a pass takes along in that time; more take proportionally longer."""


def rate_bytes_per_s(text: str) -> float:
    """`20mbit`, `1.5gbit`, `0` (unlimited): bytes per second, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not a rate.
    """
    return _measure(text, _BITS_PER_UNIT, "a rate such as 20mbit or 1.5gbit") / 8


def link(text: str) -> LinkShaping:
    """`20mbit,10ms`: rate and one-way delay, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not a rate and a delay.
    """
    rate, comma, delay = text.partition(",")
    if not comma:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form RATE,DELAY: 20mbit,10ms")
    delay_s = _measure(delay, _SECONDS_PER_UNIT, "a delay such as 10ms or 500us")
    return LinkShaping(rate_bytes_per_s(rate), delay_s)


def emulation(text: str) -> Emulation:
    """`stage=41ms,bytes=416KB[,rows=32]`, for argparse; `draft=2ms` says nothing without drafts.

    Raises:
        argparse.ArgumentTypeError: It is something else.
    """
    wanted = f"{text!r} is not of the form stage=41ms,bytes=416KB[,rows=32]"
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    if not {"stage", "bytes"} <= fields.keys() <= {"stage", "bytes", "rows", "draft"}:
        raise argparse.ArgumentTypeError(wanted)
    stage_s, _ = (
        _measure(fields.get(name, "0"), _SECONDS_PER_UNIT, "a time such as 41ms")
        for name in ("stage", "draft")
    )
    payload_bytes = _measure(fields["bytes"], _BYTES_PER_UNIT, "a size such as 416KB")
    if not stage_s or not payload_bytes:
        raise argparse.ArgumentTypeError(wanted)
    rows = positive(fields["rows"]) if "rows" in fields else None
    return Emulation(stage_s, round(payload_bytes), rows)


def stretching(text: str) -> Stretching:
    """`draft=2ms,target=40ms[,rows=16]`, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is something else.
    """
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    if not {"draft", "target"} <= fields.keys() <= {"draft", "target", "rows"}:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form draft=2ms,target=40ms[,rows=16]"
        )
    draft_s, target_s = (
        _measure(fields[name], _SECONDS_PER_UNIT, "a time such as 2ms")
        for name in ("draft", "target")
    )
    if not target_s:
        raise argparse.ArgumentTypeError(f"{text!r} leaves a pass no time")
    return Stretching(target_s, draft_s, positive(fields.get("rows", str(_STRETCHED_ROWS))))


def byte_rates(text: str) -> tuple[float, ...]:
    """`1MB,250KB`: bytes per second, as caps are set, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not a list of rates.
    """
    wanted = "a list of bytes per second such as 1MB,250KB"
    found = tuple(_measure(part, _RATE_UNITS, wanted) for part in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return found


def counts(text: str) -> tuple[int, ...]:
    """`32` or `32,64`: whole numbers from 0 up, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is something else.
    """
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number or a list such as 8,32")
    return tuple(dict.fromkeys(map(int, text.split(","))))


def sizes(text: str) -> tuple[int, ...]:
    """As `counts`, without 0.

    Raises:
        argparse.ArgumentTypeError: It is something else.
    """
    found = counts(text)
    if 0 in found:
        raise argparse.ArgumentTypeError(f"{text!r} holds a 0")
    return found


def spans(text: str) -> tuple[Span, ...]:
    """`0-12,12-20`: every stage's blocks, each from one up to but not including the next, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is something else, or blocks are left out or there twice.
    """
    if not re.fullmatch(r"\d{1,6}-\d{1,6}(,\d{1,6}-\d{1,6})*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of spans such as 0-12,12-20")
    found = tuple(Span(*map(int, part.split("-"))) for part in text.split(","))
    if any(span.end <= span.start for span in found):
        raise argparse.ArgumentTypeError(f"{text!r} has a span that ends where it begins or before")
    begins = (0, *(span.end for span in found))
    if any(span.start != begin for span, begin in zip(found, begins, strict=False)):
        raise argparse.ArgumentTypeError(
            f"{text!r} leaves blocks out or has some twice: the first span begins at 0, and each "
            "other one where the one before it ends"
        )
    return found


def share(text: str) -> float:
    """`0.05` or `5%`: a number from 0 to 1, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is something else.
    """
    match = _NUMBER.fullmatch(text.strip().removesuffix("%"))
    value = float(match[1]) / (100 if text.strip().endswith("%") else 1) if match else -1.0
    if match is None or match[2] or not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 0.05 or 5%")
    return value


def cores(text: str) -> tuple[int, ...]:
    """`0,2-3`: numbers of processor cores, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not a list of cores.
    """
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part.strip(), re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last <= _MAX_CORE:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of cores such as 0,1 or 0-3")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def positive(text: str) -> int:
    """A whole number above zero, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not one.
    """
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def seconds(text: str) -> float:
    """A number above zero, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not one.
    """
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text, re.ASCII) or float(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above zero")
    return float(text)


def names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """A reader of lists such as `shoal,zstd`, of these names only, for argparse."""

    def read(text: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(text.split(",")))
        if not set(found) <= set(known):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a list of some of {', '.join(known)}"
            )
        return found

    return read


def _measure(text: str, units: dict[str, float] | dict[str, int], wanted: str) -> float:
    match = _NUMBER.fullmatch(text.strip())
    if match is not None and float(match[1]) == 0 and not match[2]:
        return 0.0
    if match is None or match[2].lower() not in units:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return float(match[1]) * units[match[2].lower()]
