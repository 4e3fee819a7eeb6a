"""The cheapest way through all blocks and back to its beginning; pure, and quick for a thousand stages.

A sweep over the block boundaries. What it carries along is, for each stage and each first stage that
matters, the least cost at which a request can be inside that stage by now; at a boundary it may go
over to any other. Costs are whole picoseconds, so sums do not depend on their order, and equal views
give equal ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.core.ids import PeerId
from engine.core.plans import Hop, Span
from engine.planner.distances import Distances

MAX_FIRSTS: Final = 8
"""So many first stages are weighed apart, for the way from the last stage back to each."""
LONGEST_S: Final = 100.0
"""No block and no way counts for more, whatever is said of it."""
_PER_S: Final = 1e12
_FAR: Final = 1 << 61
"""More than any cost; three of them can be added up."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A stage, and what blocks cost there."""

    peer: PeerId
    span: Span
    block_s: float
    fixed_s: float = 0.0
    """What it costs to go there, however few blocks are computed."""
    is_whole: bool = False
    """Whether all of the span must be computed there, if any of it is."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The last hop of a way, the cost of all of it, and where it came from."""

    cost: int
    stage: int
    column: int
    at: int
    """The boundary at which that hop begins."""
    before: int


def cheapest(
    num_blocks: int,
    offers: Sequence[Offer],
    distance: Distances,
    broken: AbstractSet[tuple[PeerId, PeerId]] = frozenset(),
) -> tuple[Hop, ...] | None:
    """Find it.

    Args:
        num_blocks: L of the model.
        offers: Stages by peer id, none twice.
        distance: Between them, and from the client to each.
        broken: Pairs of peers the first of which cannot reach the second.

    Returns:
        Hops that cover every block once; None: there are no such. Of equal ones those with the lower
        peer ids, about.
    """
    if not offers or not num_blocks:
        return None
    return _Sweep(num_blocks, offers, distance, broken).run()


class _Sweep:
    """See `cheapest`. F: columns, one for each first stage that is weighed apart, and one for others."""

    def __init__(
        self,
        num_blocks: int,
        offers: Sequence[Offer],
        distance: Distances,
        broken: AbstractSet[tuple[PeerId, PeerId]],
    ) -> None:
        peers = [offer.peer for offer in offers]
        place = {peer: index for index, peer in enumerate(peers)}
        self._peers = peers
        self._start = np.array([offer.span.start for offer in offers])
        self._end = np.array([min(offer.span.end, num_blocks) for offer in offers])
        self._is_whole = np.array([offer.is_whole for offer in offers])
        self._block = _cost([offer.block_s for offer in offers])
        self._fixed = _cost([offer.fixed_s for offer in offers])
        here_s, between_s = distance.table(
            peers, [offer.peer for offer in offers if offer.is_whole]
        )
        self._here, self._between = _cost(here_s), _cost(between_s)
        for one, other in broken:
            if one in place and other in place:
                self._between[place[one], place[other]] = _FAR
        self._cuts = np.unique(np.concatenate(([0, num_blocks], self._start, self._end)))

        apart = np.flatnonzero(self._start == 0)
        if len(apart) > MAX_FIRSTS:
            parted = {place[other] for _, other in broken if other in place}
            apart = np.array(sorted(parted.intersection(apart.tolist())), np.int64)
        self._column = np.zeros(len(offers), np.int64)
        self._column[apart] = np.arange(1, len(apart) + 1)
        shape = (len(offers), len(apart) + 1)
        self._inside = np.full(shape, _FAR)
        """[N, F] What it costs to be inside a stage."""
        self._first = np.zeros(shape, np.int64)
        """[N, F] The first stage of that way."""
        self._passed = np.zeros((*shape, len(offers)), np.bool_)
        """[N, F, N] All stages on it, this one included."""
        self._since = np.zeros(shape, np.int64)
        """[N, F] At which boundary it enters there."""
        self._entered = np.zeros((len(self._cuts), *shape), np.int64)
        """[boundaries, N, F] The same for ways that leave at that boundary."""
        self._before = np.zeros((len(self._cuts), *shape), np.int64)
        """[boundaries, N, F] From which stage a way comes that enters at that boundary."""
        self._best: _Found | None = None

    def run(self) -> tuple[Hop, ...] | None:
        """Go through all boundaries."""
        self._begin()
        for at in range(1, len(self._cuts) - 1):
            self._go_on(at)
            self._go_over(at)
        return None if self._best is None else self._way(self._best)

    def _begin(self) -> None:
        into = np.flatnonzero(self._start == 0)
        cost = self._here[into] + self._fixed[into]
        self._inside[into, self._column[into]] = cost
        self._first[into, self._column[into]] = into
        self._passed[into, self._column[into], into] = True
        alone = self._end[into] == self._cuts[-1]
        self._finish(0, into[alone], self._column[into][alone], cost[alone], into[alone])

    def _go_on(self, at: int) -> None:
        """Let all compute as far as this boundary."""
        within = (self._start < self._cuts[at]) & (self._end >= self._cuts[at])
        length = self._cuts[at] - self._cuts[at - 1]
        self._inside[within] += length * self._block[within, None]
        self._entered[at] = self._since

    def _go_over(self, at: int) -> None:
        """Go over from every stage that can be left here to every one that can be entered."""
        cut, start, end = self._cuts[at], self._start, self._end
        out = np.flatnonzero((start < cut) & (end >= cut) & (~self._is_whole | (end == cut)))
        into = np.flatnonzero((start <= cut) & (end > cut) & (~self._is_whole | (start == cut)))
        if not len(out) or not len(into):
            return
        columns = np.arange(self._inside.shape[1])
        ways = self._inside[out][:, :, None] + self._between[np.ix_(out, into)][:, None, :]
        np.putmask(ways, self._passed[np.ix_(out, columns, into)], _FAR)
        nearest = ways.argmin(axis=0)  # [F, stages to enter]
        cost = np.take_along_axis(ways, nearest[None], axis=0)[0] + self._fixed[into]
        of, which = np.nonzero(cost < _FAR)
        stages, sources, cost = into[which], out[nearest[of, which]], cost[of, which]

        last = end[stages] == self._cuts[-1]
        first = self._first[sources[last], of[last]]
        # The way from the client to the first stage has only stood for this one.
        closed = cost[last] - self._here[first] + self._between[stages[last], first]
        self._finish(at, stages[last], of[last], closed, sources[last])

        better = cost < self._inside[stages, of]
        stages, of, sources = stages[better], of[better], sources[better]
        self._before[at, stages, of] = sources
        self._since[stages, of] = at
        self._inside[stages, of] = cost[better]
        self._first[stages, of] = self._first[sources, of]
        self._passed[stages, of] = self._passed[sources, of]
        self._passed[stages, of, stages] = True

    def _finish(
        self,
        at: int,
        stages: NDArray[np.int64],
        columns: NDArray[np.int64],
        cost: NDArray[np.int64],
        before: NDArray[np.int64],
    ) -> None:
        """Ways that end in these stages, entered at this boundary."""
        total = cost + (self._cuts[-1] - self._cuts[at]) * self._block[stages]
        if not len(total):
            return
        best = int(total.argmin())
        if total[best] < (_FAR if self._best is None else self._best.cost):
            stage, column = int(stages[best]), int(columns[best])
            self._best = _Found(int(total[best]), stage, column, at, int(before[best]))

    def _way(self, found: _Found) -> tuple[Hop, ...]:
        hops = [self._hop(found.stage, found.at, len(self._cuts) - 1)]
        at, stage = found.at, found.before
        while at:
            entered = int(self._entered[at, stage, found.column])
            hops.append(self._hop(stage, entered, at))
            at, stage = entered, int(self._before[entered, stage, found.column])
        return tuple(reversed(hops))

    def _hop(self, stage: int, start: int, end: int) -> Hop:
        return Hop(self._peers[stage], Span(int(self._cuts[start]), int(self._cuts[end])))


def _cost(seconds: ArrayLike) -> NDArray[np.int64]:
    costs: NDArray[np.int64] = np.rint(np.minimum(seconds, LONGEST_S) * _PER_S).astype(np.int64)
    return costs
