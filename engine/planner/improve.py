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


def improved(
    question: Question, below_ns: int = NEVER, *, starts: int = 1, rounds: int = _ROUNDS
) -> Partition | None:
    """A good pipeline of many machines: chains of nearest neighbours, improved.

    Args:
        question: Tables.
        below_ns: Step time of a plan that is already known; the result must be shorter.
        starts: So many machines are tried as the chain's first one.
        rounds: Of improvement.
    """
    found = None
    for first in _beginnings(question)[:starts]:
        tried = _improved_order(question, nearest_order(question, first), rounds)
        if tried is not None and value_ns(question, tried) < below_ns:
            found, below_ns = tried, value_ns(question, tried)
    return found


def _improved_order(question: Question, order: list[int], rounds: int) -> Partition | None:
    found = solve_in_order(question, order, range(min(_FIRSTS, len(order))))
    if found is None:
        found = solve_in_order(question, order)  # a rare case: few can begin
    for _ in range(rounds if found is not None else 0):
        assert found is not None
        chain = shortened([share.place for share in found.shares], question, found.load_ns)
        order = _with_the_others(chain, question)
        firsts = [order.index(place) for place in chain[:_FIRSTS]]
        tried = solve_in_order(question, order, firsts, value_ns(question, found))
        if tried is None:
            break
        found = tried
    return found


def _beginnings(question: Question) -> list[int]:
    """Machines that can begin, the fastest first, and then all others."""
    can_begin = question.stage_ns[:, FIRST, 1:].min(axis=1) < NEVER
    cost = np.where(can_begin, _block_ns(question), NEVER)
    return [int(place) for place in np.argsort(cost, kind="stable")]


def nearest_order(question: Question, first: int) -> list[int]:
    """All machines, each followed by the one that is nearest and fastest of the rest."""
    num, cost = len(question.stage_ns), _block_ns(question)
    left = np.ones(num, dtype=bool)
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
    _, link_ns, back_ns = allowed(question, limit_ns)
    chain, moved = list(chain), len(chain) > 2
    while moved:
        moved = False
        for place in chain:
            at = chain.index(place)
            rest = chain[:at] + chain[at + 1 :]
            detours = _detours_ns(rest, place, link_ns, back_ns)
            best = int(detours.argmin())
            if detours[best] < detours[at]:
                chain, moved = [*rest[:best], place, *rest[best:]], True
    return chain


def _detours_ns(chain: Sequence[int], place: int, link_ns: Times, back_ns: Times) -> Times:
    """How much longer links get with one more machine, by where it comes in, [n + 1]."""
    first, last = chain[0], chain[-1]
    before, after = list(chain[:-1]), list(chain[1:])
    return np.concatenate(
        [
            [link_ns[place, first] + back_ns[last, place] - back_ns[last, first]],
            link_ns[before, place] + link_ns[place, after] - link_ns[before, after],
            [link_ns[last, place] + back_ns[place, first] - back_ns[last, first]],
        ]
    )


def _with_the_others(chain: Sequence[int], question: Question) -> list[int]:
    """The chain, and every other machine where it would be the least detour."""
    num = len(question.stage_ns)
    gaps: list[list[tuple[int, int]]] = [[] for _ in range(len(chain) + 1)]
    for place in sorted(set(range(num)) - set(chain)):
        detours = _detours_ns(chain, place, question.link_ns, question.back_ns)
        gap = int(detours.argmin())
        gaps[gap].append((int(detours[gap]), place))
    order = [place for _, place in sorted(gaps[0], reverse=True)]
    for index, place in enumerate(chain):
        order += [place, *(other for _, other in sorted(gaps[index + 1]))]
    return order


def promising(question: Question) -> list[int]:
    """The machines of a good pipeline, and as many again that come next: ascending."""
    found = improved(question, rounds=1)
    if found is None:
        return list(range(len(question.stage_ns)))
    used = [share.place for share in found.shares]
    cost = _block_ns(question) + np.minimum(
        question.link_ns[used].min(axis=0), question.link_ns[:, used].min(axis=1)
    )
    cost[used] = -1
    order = np.argsort(cost, kind="stable")
    return sorted(int(place) for place in order[: 2 * len(used) + _SPARE])
