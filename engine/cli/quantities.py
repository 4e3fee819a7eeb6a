"""Sizes, durations and spans as people write them on a command line. Pure."""

from __future__ import annotations

import argparse
import re
from typing import Final

_BYTES_PER_UNIT: Final = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "k": 1 << 10,
    "m": 1 << 20,
    "g": 1 << 30,
    "t": 1 << 40,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_SECONDS_PER_UNIT: Final = {"": 1, "s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)", re.ASCII)


def size_bytes(text: str) -> int:
    """`1GiB`, `512 MB`, `4096`: a size in bytes, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not one.
    """
    return round(_quantity(text, _BYTES_PER_UNIT, "a size such as 512MiB or 2GB"))


def duration_s(text: str) -> float:
    """`90`, `30s`, `10m`, `1.5h`, `2d`: a duration in seconds, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not one, or is zero.
    """
    seconds = _quantity(text, _SECONDS_PER_UNIT, "a duration such as 30s, 10m or 1h")
    if seconds <= 0:
        raise argparse.ArgumentTypeError("the duration must be longer than nothing")
    return seconds


def block_span(text: str) -> tuple[int, int]:
    """`0:15`: blocks 0 to 14, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not a span.
    """
    match = re.fullmatch(r"(\d{1,6}):(\d{1,6})", text, re.ASCII)
    if match is None or int(match[1]) >= int(match[2]):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a span of blocks such as 0:15 (the end is not included)"
        )
    return int(match[1]), int(match[2])


def positive(text: str) -> int:
    """A whole number above zero, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not one.
    """
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def shown_bytes(size: float) -> str:
    """A size for people: `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _quantity(text: str, units: dict[str, int], wanted: str) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2].lower() not in units or len(text) > 32:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return float(match[1]) * units[match[2].lower()]
