"""Good orders of many machines: a nearest neighbour chain, and moves that shorten it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.planner.partition import Partition, allowed, solve_in_order, value_ns
from engine.planner.tables import FIRST, MIDDLE, NEVER, Question, Times

_ROUNDS: Final = 6
"""The first two or three bring nearly everything."""
_FIRSTS: Final = 4
"""So many machines may begin: each makes the search as much longer."""
_SPARE: Final = 8
"""Machines that are looked at beside twice as many as a good pipeline uses."""


def improved(question: Question, order: Sequence[int] | None = None) -> Partition | None:
    """A good pipeline of many machines.

    Args:
        question: Tables.
        order: To begin with; None: a chain of nearest neighbours.
    """
    order = nearest_order(question) if order is None else list(order)
    found = _solved(question, order, order[:_FIRSTS])
    if found is None:
        found = solve_in_order(question, order)  # a rare case: few can begin
    for _ in range(_ROUNDS if found is not None else 0):
        assert found is not None
        chain = shortened([share.place for share in found.shares], question, found.load_ns)
        order = _with_the_others(chain, question)
        tried = _solved(question, order, chain[:_FIRSTS])
        if tried is None or value_ns(question, tried) >= value_ns(question, found):
            break
        found = tried
    return found


def _solved(question: Question, order: list[int], begins: Sequence[int]) -> Partition | None:
    return solve_in_order(question, order, [order.index(place) for place in begins])


def nearest_order(question: Question) -> list[int]:
    """All machines, each followed by the one that is nearest and fastest of the rest."""
    num = len(question.stage_ns)
    cost = _block_ns(question)
    left = np.ones(num, dtype=bool)
    can_begin = question.stage_ns[:, FIRST, 1:].min(axis=1) < NEVER
    first = int(np.where(can_begin, cost, np.int64(NEVER)).argmin())
    order = [first]
    left[first] = False
    while left.any():
        way = np.where(left, np.minimum(question.link_ns[order[-1]] + cost, NEVER), 2 * NEVER)
        order.append(int(way.argmin()))
        left[order[-1]] = False
    return order


def _block_ns(question: Question) -> Times:
    """The least that a block costs each machine, the pass's overhead shared out, [N]."""
    lengths = np.arange(1, question.num_blocks + 1)
    stage_ns = question.stage_ns[:, MIDDLE, 1:]
    each: Times = np.where(stage_ns < NEVER, stage_ns // lengths, NEVER).min(axis=1)
    return each


def shortened(chain: Sequence[int], question: Question, limit_ns: int) -> list[int]:
    """The same machines in an order with shorter links: one at a time moves where it fits best.

    Args:
        chain: Places in order.
        question: Tables.
        limit_ns: Links that are busy for longer may not be used.
    """
    _, link_ns = allowed(question, limit_ns)
    best = list(chain)
    best_ns = _links_ns(best, question, link_ns)
    moved = len(best) > 1
    while moved:
        moved = False
        for place in list(best):
            rest = [other for other in best if other != place]
            for at in range(len(rest) + 1):
                tried = [*rest[:at], place, *rest[at:]]
                tried_ns = _links_ns(tried, question, link_ns)
                if tried_ns < best_ns:
                    best, best_ns, moved = tried, tried_ns, True
    return best


def _links_ns(chain: Sequence[int], question: Question, link_ns: Times) -> int:
    ways = link_ns[chain[:-1], chain[1:]].sum()
    return int(ways) + int(question.back_ns[chain[-1], chain[0]])


def _with_the_others(chain: Sequence[int], question: Question) -> list[int]:
    """The chain, and every other machine where it would be the least detour."""
    num = len(question.stage_ns)
    link_ns = np.minimum(question.link_ns, NEVER)
    used = list(chain)
    following = used[1:]
    gaps: list[list[tuple[int, int]]] = [[] for _ in range(len(used) + 1)]
    for place in sorted(set(range(num)) - set(used)):
        before = link_ns[place, used[0]]
        after = link_ns[used[-1], place]
        between = (
            link_ns[used[:-1], place] + link_ns[place, following] - link_ns[used[:-1], following]
        )
        detours = [int(before), *(int(way) for way in between), int(after)]
        gap = min(range(len(detours)), key=detours.__getitem__)
        gaps[gap].append((detours[gap], place))
    order = [place for _, place in sorted(gaps[0], reverse=True)]
    for index, place in enumerate(used):
        order += [place, *(other for _, other in sorted(gaps[index + 1]))]
    return order


def promising(question: Question) -> list[int]:
    """The machines of a good pipeline, and as many again that come next: ascending."""
    found = improved(question)
    if found is None:
        return list(range(len(question.stage_ns)))
    used = [share.place for share in found.shares]
    cost = _block_ns(question) + np.minimum(
        question.link_ns[used].min(axis=0), question.link_ns[:, used].min(axis=1)
    )
    cost[used] = -1
    order = np.argsort(cost, kind="stable")
    return sorted(int(place) for place in order[: 2 * len(used) + _SPARE])
