"""What an agent knows of the pruners that its worker has loaded. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """What was measured on held-out prompts at one τ."""

    prune_threshold: float
    surviving: float
    """Share of the drafted tokens that are sent on."""
    remaining: float
    """Share of the accepted tokens that is left."""


@dataclass(frozen=True, slots=True)
class PrunerFacts:
    """A pruner that the worker has loaded, as the agent knows it."""

    num_blocks: int
    """It judges after so many."""
    tree_s: float
    """What judging one tree takes, as the worker has measured it."""
    levels: tuple[Level, ...]


def levels_of(measured: Sequence[Mapping[str, float]]) -> tuple[Level, ...]:
    """From a pruner's description."""
    return tuple(
        Level(row["prune_threshold"], row["surviving"], row["remaining"]) for row in measured
    )
