"""In which order machines stand in the pipeline: exact for few, local improvement for many.

Blocks cost a machine the same wherever in the model they are. So a set of machines, with its first
and last one, has a shortest path through it (which the lines decide) and a best division of the
blocks (which the order does not change), and the best pipeline is the best sum of the two.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.planner.improve import improved
from engine.planner.partition import (
    Partition,
    Share,
    allowed,
    best,
    combine,
    measured,
)
from engine.planner.tables import FIRST, LAST, MIDDLE, NEVER, Question, Times

EXACT_MACHINES: Final = 8
"""Up to so many, all orders are weighed: 2^N sets."""


_Index: TypeAlias = NDArray[np.int64]
_Steps: TypeAlias = tuple[tuple[_Index, _Index], ...]
_Inner: TypeAlias = tuple[tuple[_Index, _Index], ...]


def solve(question: Question, below_ns: int = NEVER) -> Partition | None:
    """The best pipeline of these machines, order included.

    Args:
        question: Tables.
        below_ns: Step time of a plan that is already known; the result must be shorter.

    Returns:
        None: nothing fits, or nothing is shorter. Exact up to `EXACT_MACHINES`.
    """
    if len(question.stage_ns) <= EXACT_MACHINES:
        return best(question, Subsets(question), below_ns)
    return improved(question, below_ns)


class _Weighed(NamedTuple):
    """All that is to be known of every set."""

    paths: Times
    """Shortest path from first through all of a set to last, [N, 2^N, N]."""
    inner: Times
    """Least of e blocks on exactly the machines of a set, [2^N, L + 1]."""
    ends: Times
    """Least of e blocks on a first and a last machine, [N, N, L + 1]."""
    ways: tuple[Times, ...]
    """For each first machine: the whole, by last machine and inner set."""


class Subsets:
    """Solves over every order of N machines; sets are numbers whose bits are their members.

    Args:
        question: Tables.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._num = len(question.stage_ns)
        self._steps, self._inner = _subsets(self._num)

    def shortest_way(self, limit_ns: int = NEVER) -> Partition | None:
        """See `partition.Solver`."""
        return self._solve(*allowed(self._question, limit_ns), np.add)

    def smallest_load(self) -> int:
        """See `partition.Solver`."""
        asked = self._question
        found = self._solve(asked.load_ns, asked.link_load_ns, asked.back_load_ns, np.maximum)
        return NEVER if found is None else found.load_ns

    def least_of_sets(self, join: np.ufunc) -> Times:
        """The shortest way (`np.add`) or smallest load (`np.maximum`) of each set, [2^N]."""
        asked, is_way = self._question, join is np.add
        found = self._weigh(
            asked.stage_ns if is_way else asked.load_ns,
            asked.link_ns if is_way else asked.link_load_ns,
            asked.back_ns if is_way else asked.back_load_ns,
            join,
        )
        least = np.full(1 << self._num, NEVER, dtype=np.int64)
        least[1 << np.arange(self._num)] = (
            asked.stage_ns[:, FIRST | LAST, -1] if is_way else asked.load_ns[:, FIRST | LAST, -1]
        )
        for first, ways in enumerate(found.ways):
            others, sets = self._inner[first]
            np.minimum.at(least, sets | (1 << first) | (1 << others)[:, None], ways)
        return np.minimum(least, NEVER)

    def _weigh(self, stages: Times, links: Times, backs: Times, join: np.ufunc) -> _Weighed:
        paths = self._paths(links, join)
        inner = self._divisions(stages[:, MIDDLE], join)
        lasts = np.ascontiguousarray(stages[:, LAST])
        ends = np.stack([combine(lasts, costs, join) for costs in stages[:, FIRST]])
        ways = []
        for first in range(self._num if self._num > 1 else 0):
            others, sets = self._inner[first]
            rest = join(ends[first, others, None, ::-1], inner[sets]).min(axis=2)
            whole = sets | (1 << first) | (1 << others)[:, None]
            path = join(paths[first, whole, others[:, None]], backs[others, first, None])
            ways.append(join(rest, path))
        return _Weighed(paths, inner, ends, tuple(ways))

    def _solve(self, stages: Times, links: Times, backs: Times, join: np.ufunc) -> Partition | None:
        num_blocks = self._question.num_blocks
        found = self._weigh(stages, links, backs, join)
        alone = int(stages[:, FIRST | LAST, num_blocks].argmin())
        least, at = int(stages[alone, FIRST | LAST, num_blocks]), (alone, alone, 0)
        for first, ways in enumerate(found.ways):
            index = int(ways.argmin())
            if int(ways.flat[index]) < least:
                others, sets = self._inner[first]
                last = int(others[index // sets.shape[1]])
                least, at = int(ways.flat[index]), (first, last, int(sets.flat[index]))
        if least >= NEVER:
            return None
        if at[0] == at[1]:
            return measured(self._question, (Share(alone, num_blocks),))
        order = self._trace_path(found.paths, links, join, *at)
        lengths = self._trace_division(stages, found, join, *at)
        return measured(self._question, tuple(Share(place, lengths[place]) for place in order))

    def _paths(self, links: Times, join: np.ufunc) -> Times:
        """Shortest path from first through all of a set to last, [N, 2^N, N] (Held and Karp)."""
        num = self._num
        paths = np.full((num, 1 << num, num), NEVER, dtype=np.int64)
        paths[range(num), [1 << place for place in range(num)], range(num)] = 0
        into = np.ascontiguousarray(links.T)
        for sets, lasts in self._steps:
            before = join(paths[:, sets ^ (1 << lasts), :], into[lasts])
            paths[:, sets, lasts] = np.minimum(before.min(axis=2), NEVER)
        return paths

    def _divisions(self, stages: Times, join: np.ufunc) -> Times:
        """Least time of e blocks on exactly the machines of a set, [2^N, L + 1]."""
        out = np.full((1 << self._num, stages.shape[1]), NEVER, dtype=np.int64)
        out[0, 0] = 0
        for place in range(self._num):
            # Sets whose highest member is `place`, from those of lower ones.
            out[1 << place : 2 << place] = combine(out[: 1 << place], stages[place], join)
        return out

    @staticmethod
    def _trace_path(
        paths: Times, links: Times, join: np.ufunc, first: int, last: int, inner: int
    ) -> list[int]:
        order, within = [last], inner | (1 << first) | (1 << last)
        while last != first:
            within ^= 1 << last
            last = int(join(paths[first, within], links[:, last]).argmin())
            order.append(last)
        return order[::-1]

    def _trace_division(
        self, stages: Times, found: _Weighed, join: np.ufunc, first: int, last: int, inner: int
    ) -> dict[int, int]:
        """How many blocks each machine gets."""
        num_blocks = self._question.num_blocks
        e = int(join(found.ends[first, last], found.inner[inner, ::-1]).argmin())
        of_first = int(join(stages[first, FIRST, : e + 1], stages[last, LAST, e::-1]).argmin())
        lengths, left = {first: of_first, last: e - of_first}, num_blocks - e
        for place in reversed(range(self._num)):
            if (inner >> place) & 1:
                inner ^= 1 << place
                ways = join(stages[place, MIDDLE, : left + 1], found.inner[inner, left::-1])
                lengths[place] = int(ways.argmin())
                left -= lengths[place]
        return lengths


@cache
def _subsets(num: int) -> tuple[_Steps, _Inner]:
    """Indices: (set, last) by size of the set, from 2 on; for each first, lasts and inner sets."""
    every = np.arange(1 << num)
    members = (every[:, None] >> np.arange(num)) & 1
    sizes = members.sum(axis=1)
    steps = []
    for size in range(2, num + 1):
        rows, lasts = np.nonzero(members[sizes == size])
        steps.append((every[sizes == size][rows], lasts))
    inner = []
    for first in range(num):
        others = np.array([place for place in range(num) if place != first], dtype=np.int64)
        bits = (1 << others) | (1 << first)
        sets = [every[(every & mask) == 0] for mask in bits]
        inner.append((others, np.array(sets, dtype=np.int64)))
    return tuple(steps), tuple(inner)
