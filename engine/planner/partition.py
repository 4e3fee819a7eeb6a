"""How many blocks each machine gets, in a given order: exact, and machines may get none.

Interval dynamic programming of [BB] §5.1, O(N·L²). Here hops are not a stage's own property but a
pair's, so skipping a machine puts the last one used into the state, and the way back from the last
to the first puts the first one there: O(N²·(N + L)·L) as a few array operations per machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from engine.planner.flow import Form
from engine.planner.tables import FIRST, LAST, MIDDLE, NEVER, Question, Times


class Share(NamedTuple):
    """What one machine gets."""

    place: int
    """Of the machine in the fleet."""
    length: int
    """L_i blocks, at least 1."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A pipeline: stages in order, and the two parts of its step time."""

    shares: tuple[Share, ...]
    way_ns: int
    load_ns: int


Solver = Callable[[int], Partition | None]
"""The partition with the shortest way round of those whose parts are busy for at most so long."""


def solve_in_order(
    question: Question, order: Sequence[int], firsts: Sequence[int] | None = None
) -> Partition | None:
    """The best partition for machines in this order; None: nothing fits.

    Args:
        question: Tables.
        order: Places in the fleet.
        firsts: Indices into `order` that may begin; None: any.
    """
    return best(question, lambda limit_ns: shortest_way(question, order, limit_ns, firsts))


def best(question: Question, solve: Solver, below_ns: int = NEVER) -> Partition | None:
    """Find the partition with the least step time, given one that finds shortest ways.

    The way round only grows as the limit on loads falls. So in a ring the best limit lies where
    the two cross, which bisection finds, and in a chain the search stops when even the smallest
    load could not make up for the way.

    Args:
        question: Tables.
        solve: Exact for every limit.
        below_ns: Step time of a plan that is already known; the result must be shorter.

    Returns:
        None: nothing fits, or nothing is shorter.
    """
    top = solve(NEVER)
    if top is None or question.step_ns(top.way_ns, 0) >= below_ns:
        return None
    found = top
    if question.form is not Form.SUM:
        limits = [limit for limit in _limits(question) if limit < top.load_ns]
        search = _descend if question.form is Form.CHAIN else _bisect
        found = search(question, solve, limits, top)
    return found if value_ns(question, found) < below_ns else None


def value_ns(question: Question, partition: Partition) -> int:
    """Its step time."""
    return question.step_ns(partition.way_ns, partition.load_ns)


def _limits(question: Question) -> list[int]:
    loads = np.concatenate([question.load_ns.ravel(), question.link_load_ns.ravel()])
    return [int(load) for load in np.unique(loads[loads < NEVER])]


def _bisect(question: Question, solve: Solver, limits: Sequence[int], top: Partition) -> Partition:
    """Where the load stops being what a step's time is made of."""
    found, low, high = top, 0, len(limits)
    while low < high:
        middle = (low + high) // 2
        tried = solve(limits[middle])
        if tried is not None and value_ns(question, tried) < value_ns(question, found):
            found = tried
        if tried is None or question.step_ns(tried.way_ns, 0) > question.step_ns(0, limits[middle]):
            low = middle + 1
        else:
            high = middle
    return found


def _descend(question: Question, solve: Solver, limits: Sequence[int], top: Partition) -> Partition:
    """Every load from the largest down, as long as it may pay."""
    found, tried = top, top
    least = limits[0] if limits else top.load_ns
    while True:
        lower = [limit for limit in limits if limit < tried.load_ns]
        if not lower or question.step_ns(tried.way_ns, least) >= value_ns(question, found):
            return found
        next_one = solve(lower[-1])
        if next_one is None:
            return found
        tried = next_one
        if value_ns(question, tried) < value_ns(question, found):
            found = tried


def allowed(question: Question, limit_ns: int) -> tuple[Times, Times]:
    """Times of stages and links whose load is within a limit; NEVER for all others."""
    stage_ns = np.where(question.load_ns <= limit_ns, question.stage_ns, NEVER)
    link_ns = np.where(question.link_load_ns <= limit_ns, question.link_ns, NEVER)
    return stage_ns, link_ns


def min_plus(left: Times, right: Times) -> Times:
    """Σ_a min(left[…, e - a] + right[a]) for every e: two shares of e blocks.

    Args:
        left: […, L + 1].
        right: [L + 1]; its own [0] counts, too.
    """
    used = np.flatnonzero(right < NEVER)
    if not used.size:
        return np.full_like(left, NEVER)
    first, last = int(used[0]), int(used[-1])
    num = left.shape[-1]
    padded = np.full((*left.shape[:-1], num + last - first), NEVER, dtype=np.int64)
    padded[..., last - first :] = left
    # windows[…, x, k] = left[…, x - (last - first) + k], so that a = last - k.
    windows = sliding_window_view(padded, last - first + 1, axis=-1)
    sums = (windows + right[first : last + 1][::-1]).min(axis=-1)
    out = np.full_like(left, NEVER)
    out[..., first:] = np.minimum(sums[..., : num - first], NEVER)
    return out


def shortest_way(
    question: Question,
    order: Sequence[int],
    limit_ns: int = NEVER,
    firsts: Sequence[int] | None = None,
) -> Partition | None:
    """The partition with the shortest way round whose parts are busy for at most `limit_ns`.

    Args:
        question: Tables.
        order: Places in the fleet.
        limit_ns: On every stage's and line's load.
        firsts: Indices into `order` that may begin; None: any.
    """
    num, num_blocks = len(order), question.num_blocks
    stage_all, link_all = allowed(question, limit_ns)
    stage_ns, back_ns = stage_all[list(order)], question.back_ns[np.ix_(order, order)]
    link_ns = link_all[np.ix_(order, order)]
    begins = list(range(num)) if firsts is None else sorted(firsts)
    # ends[j, f, e]: blocks [0, e) are taken, by machines from begins[f] to the j-th.
    ends = np.full((num, len(begins), num_blocks + 1), NEVER, dtype=np.int64)
    arrives = np.full_like(ends, NEVER)
    finish = np.full((num, len(begins)), NEVER, dtype=np.int64)
    for j in range(num):
        earlier = sum(begin < j for begin in begins)
        if earlier:
            ways = ends[:j, :earlier] + link_ns[:j, j, None, None]
            arrive = arrives[j, :earlier] = np.minimum(ways.min(axis=0), NEVER)
            ends[j, :earlier] = min_plus(arrive, stage_ns[j, MIDDLE])
            closing = arrive + stage_ns[j, LAST, ::-1]
            finish[j, :earlier] = closing.min(axis=1) + back_ns[j, begins[:earlier]]
        if earlier < len(begins) and begins[earlier] == j:
            ends[j, earlier] = stage_ns[j, FIRST]
            finish[j, earlier] = stage_ns[j, FIRST | LAST, num_blocks]
    last, f = (int(index) for index in np.unravel_index(finish.argmin(), finish.shape))
    if finish[last, f] >= NEVER:
        return None
    way_ns = int(finish[last, f])
    shares: list[Share] = []
    j, e, role = last, num_blocks, LAST
    while j != begins[f]:
        choices = arrives[j, f, e::-1] + stage_ns[j, role, : e + 1]
        length = int(choices.argmin())
        shares.append(Share(order[j], length))
        e -= length
        came_from = int((ends[:j, f, e] + link_ns[:j, j]).argmin())
        j, role = came_from, MIDDLE
    shares.append(Share(order[j], e))
    return measured(question, tuple(reversed(shares)), way_ns)


def measured(question: Question, shares: tuple[Share, ...], way_ns: int | None = None) -> Partition:
    """A partition with what its parts take.

    Args:
        question: Tables.
        shares: Its stages in order.
        way_ns: If it is known already.
    """
    last = len(shares) - 1
    roles = [FIRST * (index == 0) | LAST * (index == last) for index in range(len(shares))]
    at = [(share.place, role, share.length) for share, role in zip(shares, roles, strict=True)]
    hops = [(one.place, other.place) for one, other in pairwise(shares)]
    if way_ns is None:
        way_ns = sum(int(question.stage_ns[key]) for key in at)
        way_ns += sum(int(question.link_ns[hop]) for hop in hops)
        if hops:
            way_ns += int(question.back_ns[shares[-1].place, shares[0].place])
    loads = [int(question.load_ns[key]) for key in at]
    loads += [int(question.link_load_ns[hop]) for hop in hops]
    return Partition(shares, min(way_ns, NEVER), max(loads))
