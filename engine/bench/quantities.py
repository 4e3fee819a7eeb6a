"""Rates, delays and lists as people write them on the bench's command line. Pure."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

_BITS_PER_UNIT: Final = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_SECONDS_PER_UNIT: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBER: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([a-zA-Z]*)", re.ASCII)
_MAX_CORE: Final = 4096


@dataclass(frozen=True, slots=True)
class LinkShaping:
    """What every peer's line is slowed down to."""

    rate_bytes_per_s: float
    """0: unlimited."""
    delay_s: float


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
