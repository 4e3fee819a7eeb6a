"""The reasons for which a guest yields, each with its own threshold to begin and to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from engine.config import GuestConfig
from engine.core.schedule import WeeklySchedule
from engine.core.sentences import Sentence
from engine.policy.readings import Reading

OTHERS_BUSY_SHARE = 0.2
OTHERS_QUIET_SHARE = 0.1
"""A full-screen program is heavy above the first, and has become light below the second."""
COOLER_BY_C = 10.0
"""A GPU that was too hot must be cooler by this before it works again."""


class Kind(StrEnum):
    """What a yield is for, in one word."""

    PROGRAM = "program"
    GAME = "game"
    FULL_SCREEN = "full_screen"
    GPU_MEMORY = "gpu_memory"
    TEMPERATURE = "temperature"
    BATTERY = "battery"
    METERED = "metered"
    SCHEDULE = "schedule"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason to yield."""

    kind: Kind
    reason: Sentence
    """One sentence for a person."""
    until_unix_s: float | None = None
    """When it ends by itself, if that is known."""


def first_cause(
    reading: Reading, rules: GuestConfig, current: Kind | None, held_bytes: int
) -> Cause | None:
    """The foremost reason to yield now.

    Args:
        reading: The machine now.
        rules: What the person has chosen.
        current: What we yield to already; its threshold to end applies, not the one to begin.
        held_bytes: GPU memory that we shall want back.
    """
    found = (cause for rule in _RULES for cause in rule(reading, rules, current, held_bytes))
    return next(found, None)


_Rule = Callable[[Reading, GuestConfig, Kind | None, int], Iterator[Cause]]


def _room(
    reading: Reading, rules: GuestConfig, current: Kind | None, held_bytes: int
) -> Iterator[Cause]:
    """The user's programs need the machine, whether others use it too or not."""
    if reading.programs:
        yield Cause(
            Kind.PROGRAM,
            Sentence("Yielding to {program}, which is running.", program=min(reading.programs)),
        )
    if rules.to_games and reading.in_game_mode:
        yield Cause(Kind.GAME, Sentence("Yielding to a game that has asked for GameMode."))
    gpu = reading.gpu
    if gpu is None:
        return
    if rules.to_games and reading.full_screen is not None:
        limit = OTHERS_QUIET_SHARE if current is Kind.FULL_SCREEN else OTHERS_BUSY_SHARE
        # Where nobody can tell who uses the GPU, a guest rather yields.
        if gpu.others_busy_share is None or gpu.others_busy_share >= limit:
            name = reading.full_screen
            yield Cause(
                Kind.FULL_SCREEN,
                Sentence("Yielding to {program}, which fills the screen.", program=name)
                if name
                else Sentence("Yielding to a program, which fills the screen."),
            )
    wanted_bytes = held_bytes if current is Kind.GPU_MEMORY else 0
    if rules.gpu_free_bytes and gpu.free_bytes < rules.gpu_free_bytes + wanted_bytes:
        yield Cause(
            Kind.GPU_MEMORY, Sentence("Yielding because other programs need the GPU's memory.")
        )
    hot_c = rules.gpu_max_c - (COOLER_BY_C if current is Kind.TEMPERATURE else 0)
    if rules.gpu_max_c and gpu.temperature_c is not None and gpu.temperature_c >= hot_c:
        yield Cause(
            Kind.TEMPERATURE,
            Sentence("Cooling down: the GPU has {degrees} °C.", degrees=round(gpu.temperature_c)),
        )


def _giving(
    reading: Reading, rules: GuestConfig, current: Kind | None, held_bytes: int
) -> Iterator[Cause]:
    """Giving to others costs the user something now; a node that is solo gives nothing."""
    if not reading.in_swarm:
        return
    if reading.on_battery and not rules.on_battery:
        yield Cause(Kind.BATTERY, Sentence("Yielding because the computer runs on its battery."))
    if reading.is_metered and not rules.on_metered:
        yield Cause(Kind.METERED, Sentence("Yielding because the connection costs by the byte."))
    schedule = WeeklySchedule.parse(rules.schedule)
    if not schedule.is_open(reading.local):
        opening = schedule.next_opening(reading.local)
        until_unix_s = None if opening is None else _unix_s(opening, reading)
        yield Cause(Kind.SCHEDULE, Sentence("Outside the hours of your schedule."), until_unix_s)
    idle_s = reading.user_idle_s
    if rules.user_idle_s and idle_s is not None and idle_s < rules.user_idle_s:
        yield Cause(Kind.USER, Sentence("Yielding while you use the computer."))


_RULES: tuple[_Rule, ...] = (_room, _giving)


def _unix_s(local: datetime, reading: Reading) -> float:
    return reading.unix_s + (local - reading.local).total_seconds()
