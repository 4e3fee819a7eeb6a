"""Even split, Petals' placement, and trying everything: what needs no solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from math import comb, perm
from typing import Final

import numpy as np

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.planner.partition import Partition, Share, measured, value_ns
from engine.planner.petals import Server, join, settle
from engine.planner.tables import FIRST, LAST, MIDDLE, NEVER, Question

MAX_TRIED: Final = 200_000
"""More pipelines than these are not tried one by one."""


def max_blocks(question: Question) -> list[int]:
    """How many blocks fit on each machine, whatever its place in the pipeline."""
    worst_ns = question.stage_ns.max(axis=1)
    return [max((n for n, ns in enumerate(row) if ns < NEVER), default=0) for row in worst_ns]


def feasible(question: Question, shares: Sequence[Share]) -> Partition | None:
    """What a pipeline takes; None where one of its parts cannot be."""
    partition = measured(question, tuple(shares))
    return partition if max(partition.way_ns, partition.load_ns) < NEVER else None


def even_split(question: Question) -> Partition | None:
    """As many blocks on each machine, in the order given; a full one's rest goes to the others."""
    room = max_blocks(question)
    lengths = [0] * len(room)
    for _ in range(question.num_blocks):
        free = [place for place, most in enumerate(room) if lengths[place] < most]
        if not free:
            return None
        lengths[min(free, key=lambda place: (lengths[place], place))] += 1
    return feasible(question, [Share(place, n) for place, n in enumerate(lengths) if n])


def petals(question: Question) -> Partition | None:
    """Servers join and settle as in Petals, and a client takes the shortest chain ([PT] §3.3).

    A server's throughput is the lesser of what it computes and what its best line carries.
    """
    servers: list[Server] = []
    for place, length in enumerate(max_blocks(question)):
        if length:
            line_ns = min(
                (int(load) for to, load in enumerate(question.link_load_ns[place]) if to != place),
                default=0,
            )
            busy_ns = max(int(question.load_ns[place, MIDDLE, length]), line_ns, 1)
            peer = PeerId(f"{place:06}")
            servers.append(join(question.num_blocks, servers, peer, length, 1e9 / busy_ns))
    spans = [(int(server.peer), server.span) for server in settle(question.num_blocks, servers)]
    return _shortest_chain(question, spans)


def _shortest_chain(question: Question, spans: Sequence[tuple[int, Span]]) -> Partition | None:
    """The client's route: parts of spans, from cut to cut, with the shortest way round."""
    num, num_blocks = len(question.stage_ns), question.num_blocks
    cuts = sorted({0, num_blocks, *(cut for _, span in spans for cut in (span.start, span.end))})
    # [first, last] machine of the shortest way to a cut, and whence it came: last machine, cut.
    ways = {cut: np.full((num, num), NEVER, dtype=np.int64) for cut in cuts}
    came = {cut: np.zeros((num, num, 2), dtype=np.int64) for cut in cuts}
    for cut in cuts[:-1]:
        for place, span in spans:
            if not span.start <= cut < span.end:
                continue
            arrivals = ways[cut] + question.link_ns[:, place]
            before, arrive = arrivals.argmin(axis=1), arrivals.min(axis=1)
            for end in (later for later in cuts if cut < later <= span.end):
                role = LAST * (end == num_blocks)
                if cut == 0:
                    alone = int(question.stage_ns[place, role | FIRST, end])
                    ways[end][place, place] = min(alone, int(ways[end][place, place]))
                    continue
                total = arrive + int(question.stage_ns[place, role, end - cut])
                if role:
                    total = total + question.back_ns[place]
                better = total < ways[end][:, place]
                ways[end][better, place] = total[better]
                came[end][better, place] = np.stack([before, np.full(num, cut)], axis=1)[better]
    first, last = map(int, np.unravel_index(ways[num_blocks].argmin(), (num, num)))
    if ways[num_blocks][first, last] >= NEVER:
        return None
    shares, end = [], num_blocks
    while end:
        before, cut = map(int, came[end][first, last])
        shares.append(Share(last, end - cut))
        last, end = before, cut
    return feasible(question, _each_once(shares[::-1]))


def _each_once(shares: Sequence[Share]) -> list[Share]:
    """The chain without coming back to a machine, which would then be loaded twice.

    Such a machine computes what lies between by itself: its blocks are consecutive.
    """
    out: list[Share] = []
    for share in shares:
        places = [earlier.place for earlier in out]
        if share.place in places:
            again = places.index(share.place)
            share = Share(share.place, share.length + sum(each.length for each in out[again:]))
            del out[again:]
        out.append(share)
    return out


def brute_force(question: Question) -> Partition | None:
    """The best of all pipelines there can be, each of them tried.

    Raises:
        ValueError: There are more than `MAX_TRIED`.
    """
    machines, num_blocks = len(question.stage_ns), question.num_blocks
    stages = range(1, min(machines, num_blocks) + 1)
    number = sum(perm(machines, k) * comb(num_blocks - 1, k - 1) for k in stages)
    if number > MAX_TRIED:
        raise ValueError(f"{number} pipelines are too many to try them all")
    best: Partition | None = None
    for shares in _pipelines(machines, num_blocks):
        found = feasible(question, shares)
        if found and (best is None or value_ns(question, found) < value_ns(question, best)):
            best = found
    return best


def _pipelines(num_machines: int, num_blocks: int) -> Iterator[list[Share]]:
    for num_stages in range(1, min(num_machines, num_blocks) + 1):
        for order in permutations(range(num_machines), num_stages):
            for inner in combinations(range(1, num_blocks), num_stages - 1):
                cuts = (0, *inner, num_blocks)
                yield [
                    Share(place, cuts[stage + 1] - cuts[stage]) for stage, place in enumerate(order)
                ]
