"""Machines that come and go with the hours of a day."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf
from random import Random

from engine.simulator.scenario import DAY_S, Visit


def daily_visits(
    rng: Random, num_machines: int, wanted: Callable[[float], int]
) -> tuple[Visit, ...]:
    """Visits such that about `wanted` machines are there, each about once a day.

    The cycle itself brings peak - trough machines a day; the other visits replace machines that
    leave, at times when many are there rather than when few are.

    Args:
        rng: Draws who comes and leaves, and when.
        num_machines: All there are.
        wanted: Second of the day → machines that should be there.
    """
    minutes = int(DAY_S // 60)
    counts = [wanted(60.0 * minute) for minute in range(minutes + 1)]
    growth = sum(max(0, after - before) for before, after in pairwise(counts))
    swaps = sorted(
        rng.choices(range(minutes), weights=counts[:-1], k=max(0, num_machines - growth))
    )
    away = dict.fromkeys(range(num_machines), -inf)
    """Machine → when it left."""
    here: dict[int, float] = {}
    """Machine → when it came."""
    visits: list[Visit] = []

    def come(at_s: float) -> None:
        machine = rng.choice([one for one, left_s in away.items() if left_s < at_s])
        del away[machine]
        here[machine] = at_s

    def leave(at_s: float) -> None:
        machine = rng.choice([one for one, came_s in here.items() if came_s < at_s])
        visits.append(Visit(machine, here.pop(machine), at_s))
        away[machine] = at_s

    for _ in range(counts[0]):
        come(-1.0)
    for minute, count in enumerate(counts[1:]):
        begins_s = 60.0 * minute
        for _ in range(swaps.count(minute)):
            at_s = begins_s + rng.uniform(0, 60)
            leave(at_s)
            come(at_s)
        while len(here) < count:
            come(begins_s + rng.uniform(0, 60))
        while len(here) > count:
            leave(begins_s + rng.uniform(0, 60))
    visits += [Visit(machine, since_s, inf) for machine, since_s in here.items()]
    return tuple(visits)
