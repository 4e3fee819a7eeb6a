"""The networks of [BB] §8: E1 to E5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.bench.quantities import LinkShaping

_MBIT: Final = 1e6 / 8

ENVIRONMENTS: Final[Mapping[str, LinkShaping]] = {
    "E1": LinkShaping(0.0, 0.0),  # 45 Gbit/s next door: no limit that we could reach
    "E2": LinkShaping(500 * _MBIT, 0.025),
    "E3": LinkShaping(250 * _MBIT, 0.050),
    "E4": LinkShaping(125 * _MBIT, 0.075),
    "E5": LinkShaping(20 * _MBIT, 0.100),
}
"""Rate and one-way delay of every directed link."""
