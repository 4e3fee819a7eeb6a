"""Plans that are not only fast: tokens per joule and per euro."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import PlanInfeasible
from engine.core.profiles import Goal
from engine.planner.fleet import Fleet
from engine.planner.improve import improved
from engine.planner.order import EXACT_MACHINES, Subsets
from engine.planner.partition import Partition, Share, best, measured, value_ns
from engine.planner.tables import NEVER, Question

_PRICES: Final = (0.5, 2.0, 8.0)
"""How dear a machine's own rate is made while good sets of many are looked for."""
_DROPPED: Final = 4
"""Machines that are tried to be done without, the dearest per block."""

Rates = NDArray[np.float64]


def rates(fleet: Fleet, goal: Goal) -> Rates | None:
    """What every machine takes per second, [N], in watts or euros per hour; None: nothing counts.

    Raises:
        PlanInfeasible: A machine does not say.
    """
    if goal is Goal.ENERGY:
        field, values = "power_w", [profile.power_w for profile in fleet.profiles]
    elif goal is Goal.COST:
        field, values = "euro_per_hour", [profile.euro_per_hour for profile in fleet.profiles]
    else:
        return None
    for profile, value in zip(fleet.profiles, values, strict=True):
        if value <= 0:
            raise PlanInfeasible(
                f"The best plan by {goal} needs {field} of every machine, and {profile.peer} does "
                "not say it; add it or choose another goal.",
                constraint=field,
                hint=f"Give {field} for {profile.peer}.",
            )
    return np.array(values)


def solve_frugally(question: Question, rates: Rates, below: float) -> Partition | None:
    """The pipeline with the least step time times rate; exact for few machines.

    Args:
        question: Tables.
        rates: [N], per second.
        below: Only results below this count.
    """
    if len(rates) <= EXACT_MACHINES:
        return _by_sets(question, rates, below)
    return _by_prices(question, rates, below)


def least_rate(question: Question, rates: Rates) -> float:
    """What machines that have room for all blocks take together, at least."""
    lengths = np.arange(question.num_blocks + 1)
    fits = question.stage_ns.min(axis=1) < NEVER
    room = (fits * lengths).max(axis=1)
    total, left = 0.0, question.num_blocks
    for place in np.argsort(rates / np.maximum(room, 0.5), kind="stable"):
        held = min(left, int(room[place]))
        total += float(rates[place]) * held / max(1, int(room[place]))
        left -= held
    return total


def taken(question: Question, partition: Partition, rates: Rates) -> float:
    """What a step takes: its time times the rates of the machines used."""
    places = sorted(share.place for share in partition.shares)
    return value_ns(question, partition) * float(rates[places].sum())


def _by_sets(question: Question, rates: Rates, below: float) -> Partition | None:
    """Best first over the sets of machines, each bounded by its own shortest way and least load."""
    subsets, num = Subsets(question), len(rates)
    ways, loads = subsets.least_of_sets(np.add), subsets.least_of_sets(np.maximum)
    members = (np.arange(1 << num)[:, None] >> np.arange(num)) & 1
    totals = members @ rates
    bounds = [
        total * question.step_ns(int(way), int(load)) if way < NEVER else np.inf
        for total, way, load in zip(totals, ways, loads, strict=True)
    ]
    found = None
    for index in np.argsort(bounds, kind="stable"):
        if bounds[index] >= below:
            break
        places = [int(place) for place in np.flatnonzero(members[index])]
        part = question.of_places(places)
        limit_ns = min(below / totals[index], NEVER)
        tried = _in_fleet(best(part, Subsets(part), math.ceil(limit_ns)), places)
        if tried is not None and taken(question, tried, rates) < below:
            found, below = tried, taken(question, tried, rates)
    return found


def _in_fleet(partition: Partition | None, places: Sequence[int]) -> Partition | None:
    """With machines named by their places in the fleet, not among those that were allowed."""
    if partition is None:
        return None
    shares = tuple(Share(places[share.place], share.length) for share in partition.shares)
    return replace(partition, shares=shares)


def _by_prices(question: Question, rates: Rates, below: float) -> Partition | None:
    """Make dear machines slower in the search, by several amounts; then drop what does not pay."""
    plain = improved(question, rounds=1)
    if plain is None:
        return None
    mean_ns = value_ns(question, plain) / len(plain.shares) / float(rates.mean())
    found, least = None, below
    if taken(question, plain, rates) < least:
        found, least = plain, taken(question, plain, rates)
    for price in _PRICES:
        dearer = question.with_penalties((rates * (price * mean_ns)).astype(np.int64))
        tried = improved(dearer, rounds=1)
        if tried is not None:
            tried = measured(question, tried.shares)
            if taken(question, tried, rates) < least:
                found, least = tried, taken(question, tried, rates)
    before: Partition | None = None
    while found is not None and found is not before:
        before = found
        dearest = sorted(before.shares, key=lambda share: rates[share.place] / share.length)
        for share in dearest[-_DROPPED:]:
            places = [place for place in range(len(rates)) if place != share.place]
            tried = _in_fleet(improved(question.of_places(places), rounds=1), places)
            if tried is not None and taken(question, tried, rates) < least:
                found, least = tried, taken(question, tried, rates)
    return found
