"""How many blocks each machine gets, in a given order: exact, and machines may get none.

Interval dynamic programming of [BB] §5.1, O(N·L²). Here hops are not a stage's own property but a
pair's, so skipping a machine puts the last one used into the state, and the way back from the last
to the first puts the first one there: O(N²·(N + L)·L) as a few array operations per machine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

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


class Solver(Protocol):
    """Finds partitions, over some choice of orders, exactly."""

    def shortest_way(self, limit_ns: int) -> Partition | None:
        """The partition with the shortest way whose parts are busy for at most `limit_ns`."""

    def smallest_load(self) -> int:
        """What the busiest part has to do at least."""


def solve_in_order(
    question: Question,
    order: Sequence[int],
    firsts: Sequence[int] | None = None,
    below_ns: int = NEVER,
) -> Partition | None:
    """The best partition for machines in this order.

    Args:
        question: Tables.
        order: Places in the fleet.
        firsts: Indices into `order` that may begin; None: any.
        below_ns: Step time of a plan that is already known; the result must be shorter.

    Returns:
        None: nothing fits, or nothing is shorter.
    """
    return best(question, InOrder(question, order, firsts), below_ns)


def best(question: Question, solver: Solver, below_ns: int = NEVER) -> Partition | None:
    """Find the partition with the least step time.

    The shortest way only grows as the limit on loads falls. So in a ring the best limit lies where
    the two cross, which bisection finds; in a chain the search goes down load by load until even
    the smallest one could not make up for the way.

    Args:
        question: Tables.
        solver: Exact for this question.
        below_ns: Step time of a plan that is already known; the result must be shorter.

    Returns:
        None: nothing fits, or nothing is shorter.
    """
    if question.form is Form.BOTTLENECK:
        found = solver.shortest_way(solver.smallest_load())
        return found if found is not None and value_ns(question, found) < below_ns else None
    top = solver.shortest_way(NEVER)
    if top is None or question.step_ns(top.way_ns, 0) >= below_ns:
        return None
    found = top
    is_bound_by_way = value_ns(question, top) == question.step_ns(top.way_ns, 0)
    if not is_bound_by_way:
        limits = _limits(question, solver.smallest_load(), top.load_ns)
        search = _descend if question.form is Form.CHAIN else _bisect
        found = search(question, solver, limits, top, below_ns)
    return found if value_ns(question, found) < below_ns else None


def value_ns(question: Question, partition: Partition) -> int:
    """Its step time."""
    return question.step_ns(partition.way_ns, partition.load_ns)


def _limits(question: Question, least_ns: int, below_ns: int) -> Times:
    """Loads that parts may have, ascending."""
    tables = (question.load_ns, question.link_load_ns, question.back_load_ns)
    loads = np.concatenate([table.ravel() for table in tables])
    return np.unique(loads[(loads >= least_ns) & (loads < below_ns)])


def _bisect(
    question: Question, solver: Solver, limits: Times, top: Partition, below_ns: int
) -> Partition:
    """Where the load stops being what a step's time is made of.

    Each try narrows both ends: a lower limit only makes the way longer, so limits below a way that
    is the shortest can at best give that way (the highest of them does), and limits above a step
    time that is known cannot give a shorter one.
    """

    def reaching(time_ns: int) -> int:
        return bisect_left(limits, time_ns, key=lambda limit: question.step_ns(0, int(limit)))

    found = top
    low = max(0, reaching(question.step_ns(top.way_ns, 0)) - 1)
    high = reaching(min(below_ns, value_ns(question, top)))
    # The highest limit that would be an improvement tells at once whether there is one.
    middle = high - 1 if below_ns < NEVER else (low + high) // 2
    while low < high:
        tried = solver.shortest_way(int(limits[middle]))
        if tried is None:
            low = middle + 1
        else:
            found = min(found, tried, key=lambda partition: value_ns(question, partition))
            way_ns = question.step_ns(tried.way_ns, 0)
            if way_ns > question.step_ns(0, int(limits[middle])):
                low = middle + 1
            else:
                low, high = max(low, reaching(way_ns) - 1), middle
            high = min(high, reaching(value_ns(question, found)))
        middle = (low + high) // 2
    return found


def _descend(
    question: Question, solver: Solver, limits: Times, top: Partition, below_ns: int
) -> Partition:
    """Every load from the largest down, as long as it may pay."""
    found, tried = top, top
    while (lower := int(np.searchsorted(limits, tried.load_ns)) - 1) >= 0:
        if question.step_ns(tried.way_ns, int(limits[0])) >= min(
            value_ns(question, found), below_ns
        ):
            break
        faster = solver.shortest_way(int(limits[lower]))
        if faster is None:
            break
        tried = faster
        if value_ns(question, tried) < value_ns(question, found):
            found = tried
    return found


def allowed(question: Question, limit_ns: int) -> tuple[Times, Times, Times]:
    """Times of stages, links and ways back whose load is within a limit; NEVER for all others."""
    if limit_ns >= NEVER:
        return question.stage_ns, question.link_ns, question.back_ns
    stage_ns = np.where(question.load_ns <= limit_ns, question.stage_ns, NEVER)
    link_ns = np.where(question.link_load_ns <= limit_ns, question.link_ns, NEVER)
    back_ns = np.where(question.back_load_ns <= limit_ns, question.back_ns, NEVER)
    return stage_ns, link_ns, back_ns


@dataclass(frozen=True, slots=True)
class InOrder:
    """Solves for machines in a given order.

    Args:
        question: Tables.
        order: Places in the fleet.
        firsts: Indices into `order` that may begin; None: any.
    """

    question: Question
    order: Sequence[int]
    firsts: Sequence[int] | None = None

    def shortest_way(self, limit_ns: int = NEVER) -> Partition | None:
        """The partition with the shortest way whose parts are busy for at most `limit_ns`."""
        return self._solve(*allowed(self.question, limit_ns), np.add)

    def smallest_load(self) -> int:
        """What the busiest part has to do at least; NEVER: nothing fits."""
        asked = self.question
        found = self._solve(asked.load_ns, asked.link_load_ns, asked.back_load_ns, np.maximum)
        return NEVER if found is None else found.load_ns

    def _solve(self, stages: Times, links: Times, backs: Times, join: np.ufunc) -> Partition | None:
        order, num, num_blocks = list(self.order), len(self.order), self.question.num_blocks
        stages, links = stages[order], links[np.ix_(order, order)]
        backs = backs[np.ix_(order, order)]
        begins = range(num) if self.firsts is None else sorted(self.firsts)
        # ends[j, f, e]: blocks [0, e) are taken, by machines from begins[f] to the j-th.
        ends = np.full((num, len(begins), num_blocks + 1), NEVER, dtype=np.int64)
        arrives = np.full_like(ends, NEVER)
        finish = np.full((num, len(begins)), NEVER, dtype=np.int64)
        for j in range(num):
            earlier = bisect_left(begins, j)
            if earlier:
                ways = join(ends[:j, :earlier], links[:j, j, None, None])
                arrive = arrives[j, :earlier] = np.minimum(ways.min(axis=0), NEVER)
                ends[j, :earlier] = combine(arrive, stages[j, MIDDLE], join)
                closing = join(arrive, stages[j, LAST, ::-1])
                finish[j, :earlier] = join(closing.min(axis=1), backs[j, begins[:earlier]])
            if earlier < len(begins) and begins[earlier] == j:
                ends[j, earlier] = stages[j, FIRST]
                finish[j, earlier] = stages[j, FIRST | LAST, num_blocks]
        j, f = (int(index) for index in np.unravel_index(finish.argmin(), finish.shape))
        if finish[j, f] >= NEVER:
            return None
        shares: list[Share] = []
        e, role = num_blocks, LAST
        while j != begins[f]:
            choices = join(arrives[j, f, e::-1], stages[j, role, : e + 1])
            length = int(choices.argmin())
            shares.append(Share(order[j], length))
            e -= length
            j, role = int(join(ends[:j, f, e], links[:j, j]).argmin()), MIDDLE
        shares.append(Share(order[j], e))
        return measured(self.question, tuple(reversed(shares)))


def combine(left: Times, right: Times, join: np.ufunc = np.add) -> Times:
    """min_a join(left[…, e - a], right[a]) for every e: two shares of e blocks.

    Args:
        left: […, L + 1].
        right: [L + 1].
        join: `np.add`, for ways, or `np.maximum`, for loads.
    """
    out = np.full_like(left, NEVER)
    used = np.flatnonzero(right < NEVER)
    if not used.size:
        return out
    first, width, num = int(used[0]), int(used[-1] - used[0]) + 1, left.shape[-1]
    # windows[…, x, k] = left[…, x - (width - 1) + k] goes with right[first + width - 1 - k].
    padded = np.full((*left.shape[:-1], num + width - 1), NEVER, dtype=np.int64)
    padded[..., width - 1 :] = left
    costs = right[first : first + width]
    slope = int(costs[-1] - costs[0]) // max(1, width - 1)
    rising = np.arange(width) * slope + costs[0]
    if join is np.add and (costs == rising).all():
        # A straight line adds the same whoever gets a block, so a sliding minimum is enough.
        tilt = np.arange(1 - width, num) * slope
        least = _sliding_minimum(padded - tilt, width) + (tilt[width - 1 :] + int(costs[0]))
    else:
        least = join(sliding_window_view(padded, width, axis=-1), costs[::-1]).min(axis=-1)
    least = np.where(least < NEVER // 2, least, NEVER)
    out[..., first:] = least[..., : num - first]
    return out


def _sliding_minimum(values: Times, width: int) -> Times:
    """Of every `width` neighbours."""
    reach = 1
    while 2 * reach <= width:
        values = np.minimum(values[..., reach:], values[..., :-reach])
        reach *= 2
    rest = width - reach
    return np.minimum(values[..., rest:], values[..., : values.shape[-1] - rest])


def measured(question: Question, shares: tuple[Share, ...]) -> Partition:
    """A partition with what its parts take."""
    last = len(shares) - 1
    roles = [FIRST * (index == 0) | LAST * (index == last) for index in range(len(shares))]
    at = [(share.place, role, share.length) for share, role in zip(shares, roles, strict=True)]
    hops = [(one.place, other.place) for one, other in pairwise(shares)]
    way_ns = sum(int(question.stage_ns[key]) for key in at)
    way_ns += sum(int(question.link_ns[hop]) for hop in hops)
    loads = [int(question.load_ns[key]) for key in at]
    loads += [int(question.link_load_ns[hop]) for hop in hops]
    if hops:
        back = (shares[-1].place, shares[0].place)
        way_ns += int(question.back_ns[back])
        loads.append(int(question.back_load_ns[back]))
    return Partition(shares, min(way_ns, NEVER), max(loads))
