"""What the policy sees of the machine. None anywhere: nobody can tell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class GpuReading:
    """The GPU that our stage computes on."""

    free_bytes: int
    ours_bytes: int | None
    """What our own processes hold of it."""
    others_busy_share: float | None
    """The share of the last seconds in which it worked for others."""
    temperature_c: float | None
    power_w: float | None = None
    """What it draws, averaged over the last second or so."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The machine at one moment."""

    monotonic_s: float
    unix_s: float
    local: datetime
    """The wall clock."""
    in_swarm: bool
    """Others may use what we give; a node that is solo works for its own user alone."""
    on_battery: bool | None = None
    is_metered: bool | None = None
    programs: frozenset[str] = frozenset()
    """Those of the exclusive programs that run, as the settings name them."""
    in_game_mode: bool | None = None
    """Some program has asked the system for all it can give."""
    full_screen: str | None = None
    """The program that covers the screen; empty where it has no name."""
    gpu: GpuReading | None = None
    user_idle_s: float | None = None
