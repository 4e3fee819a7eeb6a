"""In which order machines stand in the pipeline: exact for few, local improvement for many.

Blocks cost a machine the same wherever in the model they are. So a set of machines, with its first
and last one, has a shortest path through it (which the lines decide) and a best division of the
blocks (which the order does not change), and the best pipeline is the best sum of the two.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.planner.improve import improved
from engine.planner.partition import (
    Partition,
    Share,
    allowed,
    best,
    measured,
    min_plus,
    value_ns,
)
from engine.planner.tables import FIRST, LAST, MIDDLE, NEVER, Question, Times

EXACT_MACHINES: Final = 8
"""Up to so many, all orders are weighed: 2^N sets."""


def solve(question: Question, below_ns: int = NEVER) -> Partition | None:
    """The best pipeline of these machines, order included.

    Args:
        question: Tables.
        below_ns: Step time of a plan that is already known; the result must be shorter.

    Returns:
        None: nothing fits, or nothing is shorter. Exact up to `EXACT_MACHINES`.
    """
    if len(question.stage_ns) <= EXACT_MACHINES:
        subsets = _Subsets(len(question.stage_ns))
        return best(question, lambda limit: subsets.shortest_way(question, limit), below_ns)
    found = improved(question)
    return found if found is not None and value_ns(question, found) < below_ns else None


class _Subsets:
    """Every set of N machines, as a number whose bits are its members.

    Args:
        num: N.
    """

    def __init__(self, num: int) -> None:
        self.num = num
        every = np.arange(1 << num)
        self._sizes = sum((every >> place) & 1 for place in range(num))
        self._by_size = [every[self._sizes == size] for size in range(num + 1)]

    def shortest_way(self, question: Question, limit_ns: int) -> Partition | None:
        """See `partition.shortest_way`; in the best order."""
        stage_ns, link_ns = allowed(question, limit_ns)
        single = stage_ns[:, FIRST | LAST, -1]
        alone = int(single.argmin())
        if self.num == 1:
            return self._alone(question, alone, int(single[alone]))
        paths = self._paths(link_ns)
        middle = self._divisions(stage_ns[:, MIDDLE])
        pairs = [
            (first, last) for first in range(self.num) for last in range(self.num) if first != last
        ]
        ends = np.stack(
            [
                min_plus(np.ascontiguousarray(stage_ns[:, LAST]), stage_ns[first, FIRST])
                for first in range(self.num)
            ]
        )
        best_way, best_at = int(single[alone]), (alone, alone, 0)
        for first, last in pairs:
            within = self._without(first, last)
            sets = within | (1 << first) | (1 << last)
            rest = (ends[first, last, ::-1] + middle[within]).min(axis=1)
            ways = rest + paths[first, sets, last] + question.back_ns[last, first]
            index = int(ways.argmin())
            if int(ways[index]) < best_way:
                best_way, best_at = int(ways[index]), (first, last, int(within[index]))
        if best_way >= NEVER:
            return None
        first, last, inner = best_at
        if first == last:
            return self._alone(question, first, best_way)
        order = self._trace_path(paths, link_ns, first, last, inner | (1 << first) | (1 << last))
        lengths = self._trace_division(stage_ns, ends, middle, first, last, inner)
        shares = tuple(Share(place, lengths[place]) for place in order)
        return measured(question, shares, best_way)

    @staticmethod
    def _alone(question: Question, place: int, way_ns: int) -> Partition | None:
        if way_ns >= NEVER:
            return None
        return measured(question, (Share(place, question.num_blocks),), way_ns)

    def _without(self, first: int, last: int) -> NDArray[np.int64]:
        every = np.arange(1 << self.num)
        return np.flatnonzero((every & ((1 << first) | (1 << last))) == 0)

    def _paths(self, link_ns: Times) -> Times:
        """Shortest path from first through all of a set to last, [N, 2^N, N] (Held and Karp)."""
        num = self.num
        paths = np.full((num, 1 << num, num), NEVER, dtype=np.int64)
        for first in range(num):
            paths[first, 1 << first, first] = 0
        for size in range(2, num + 1):
            for last in range(num):
                sets = self._by_size[size]
                sets = sets[(sets >> last) & 1 == 1]
                before = paths[:, sets ^ (1 << last), :] + link_ns[:, last]
                paths[:, sets, last] = np.minimum(before.min(axis=2), NEVER)
        return paths

    def _divisions(self, stage_ns: Times) -> Times:
        """Least time of e blocks on exactly the machines of a set, [2^N, L + 1]."""
        out = np.full((1 << self.num, stage_ns.shape[1]), NEVER, dtype=np.int64)
        out[0, 0] = 0
        for place in range(self.num):
            # Sets whose highest member is `place`, from those of lower ones.
            out[1 << place : 2 << place] = min_plus(out[: 1 << place], stage_ns[place])
        return out

    def _trace_path(
        self, paths: Times, link_ns: Times, first: int, last: int, within: int
    ) -> list[int]:
        order = [last]
        while last != first:
            within ^= 1 << last
            last = int((paths[first, within] + link_ns[:, last]).argmin())
            order.append(last)
        return order[::-1]

    def _trace_division(
        self, stage_ns: Times, ends: Times, middle: Times, first: int, last: int, inner: int
    ) -> dict[int, int]:
        """How many blocks each machine gets."""
        num_blocks = stage_ns.shape[2] - 1
        at_ends = int((ends[first, last] + middle[inner, ::-1]).argmin())
        of_first = int(
            (stage_ns[first, FIRST, : at_ends + 1] + stage_ns[last, LAST, at_ends::-1]).argmin()
        )
        lengths = {first: of_first, last: at_ends - of_first}
        left = num_blocks - at_ends
        for place in reversed(range(self.num)):
            if (inner >> place) & 1:
                inner ^= 1 << place
                ways = stage_ns[place, MIDDLE, : left + 1] + middle[inner, left::-1]
                lengths[place] = int(ways.argmin())
                left -= lengths[place]
        return lengths
