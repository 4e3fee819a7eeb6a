"""Which stages a request goes through: the cheapest chain that covers every block once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.plans import Hop, Route, Span
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.planner.distances import Distances

UNKNOWN_BLOCK_S = 0.002
"""Assumed decode time of one block on a stage that has not measured itself yet."""
FULL_S = 10.0
"""What a stage costs that said it has no room, as if a request had to wait this long there."""
ANEW_BLOCK_S = 1.0
"""What a block costs that has to compute a running request anew: more than any detour."""


_MAX_FIRSTS = 8
"""So many first stages are weighed apart, for the way from the last stage back to each."""

_Way = tuple[float, tuple[Hop, ...]]
_Key = tuple[PeerId, PeerId | None]


def find_route(
    snapshot: SwarmSnapshot,
    *,
    rows: int = 1,
    need_tokens: int = 0,
    need_ram_tokens: int = 0,
    avoid: frozenset[PeerId] = frozenset(),
    link_s: Mapping[PeerId, float] | None = None,
    kept: Sequence[Hop] = (),
    broken: frozenset[tuple[PeerId, PeerId]] = frozenset(),
) -> Route:
    """Find the chain of stages with the least expected step time.

    Shortest path over block boundaries: an edge is "stage p computes blocks [a, b)", its weight
    the time of these blocks on p plus the link to p: from the stage before, and to the first from
    the last, since tokens go round; where nobody has measured that, as far as p is from here. A
    stage may be used for a part of its span. Equal costs are decided by peer id, so that equal
    views give equal routes.

    For a request that has lost a part of its route, the hops that live keep their blocks, and the
    cheapest others fill the gaps: what has to be computed anew counts most. When that leads
    nowhere, everything is computed anew.

    Args:
        snapshot: The swarm.
        rows: Of the request; they share each pass, with those of other requests.
        need_tokens: KV room that the request takes at every stage, in tokens.
        need_ram_tokens: The same, for the share that lies in RAM.
        avoid: Peers that have just failed us.
        link_s: One-way time to each peer, in seconds, as measured from here; 0 for ourselves.
        kept: Hops that hold the request already, whatever the snapshot says of them.
        broken: Pairs of peers the first of which cannot reach the second.

    Raises:
        NoRoute: Some block is served by nobody who could take the request.
    """
    links = link_s or {}
    usable = [
        stage
        for stage in sorted(snapshot.stages, key=lambda stage: stage.peer)
        if stage.state is StageState.ONLINE
        and stage.peer not in avoid
        and all(hop.peer != stage.peer for hop in kept)
    ]
    boundaries = sorted(
        {0, snapshot.num_blocks}
        | {stage.span.start for stage in usable}
        | {stage.span.end for stage in usable}
        | {hop.span.start for hop in kept}
        | {hop.span.end for hop in kept}
    )
    spans: dict[int, dict[PeerId, list[tuple[int, float]]]] = defaultdict(dict)
    """Start → peer → (end, what these blocks cost there)."""
    for hop in kept:
        spans[hop.span.start][hop.peer] = [(hop.span.end, 0.0)]
    for stage in usable:
        # An announcement may be old: a full stage is the last choice, but a choice.
        is_full = stage.kv_free_tokens < need_tokens or stage.kv_ram_free_tokens < need_ram_tokens
        fixed_s = FULL_S if is_full else 0.0
        block_s = expected_block_s(stage, rows) + (ANEW_BLOCK_S if kept else 0.0)
        within = [cut for cut in boundaries if stage.span.start <= cut <= stage.span.end]
        for start, end in combinations(within, 2):
            costs = spans[start].setdefault(stage.peer, [])
            costs.append((end, fixed_s + (end - start) * block_s))
    distance = Distances(snapshot, links, frozenset(hop.peer for hop in kept))
    apart = {pair[1] for pair in broken}
    if len(spans[0]) <= _MAX_FIRSTS:
        apart |= spans[0].keys()
    best: dict[int, dict[_Key, _Way]] = defaultdict(dict)
    for boundary in boundaries:
        arrived = sorted(best[boundary].values(), key=_cost) if boundary else [(0.0, ())]
        for peer, costs in spans[boundary].items():
            for cost, hops in _nearest(arrived, peer, distance, broken, apart):
                first = hops[0].peer if hops else peer
                for end, blocks_s in costs:
                    total = cost + blocks_s
                    if end == snapshot.num_blocks and hops:
                        if (peer, first) in broken:
                            continue  # the ring does not close
                        total += distance.back(peer, first)
                    key = (peer, first if first in apart else None)
                    if key not in best[end] or total < best[end][key][0] - 1e-12:
                        best[end][key] = (total, (*hops, Hop(peer, Span(boundary, end))))
    found = best[snapshot.num_blocks] if snapshot.num_blocks else {}
    if not found and kept:
        return find_route(
            snapshot,
            rows=rows,
            need_tokens=need_tokens,
            need_ram_tokens=need_ram_tokens,
            avoid=avoid,
            link_s=link_s,
            broken=broken,
        )
    if not found:
        raise NoRoute(_explain(snapshot))
    return Route(min(found.values(), key=_cost)[1])


def _cost(way: _Way) -> float:
    return round(way[0], 12)  # sums in another order differ in the last bits


def _nearest(
    arrived: Sequence[_Way],
    peer: PeerId,
    distance: Distances,
    broken: frozenset[tuple[PeerId, PeerId]],
    apart: set[PeerId],
) -> Iterable[_Way]:
    """The cheapest ways to get to `peer` from what was reached: one for each first stage `apart`.

    Args:
        arrived: Ways so far, the cheapest first.
        peer: Where to go on.
        distance: From stage to stage.
        broken: Pairs that cannot be.
        apart: First stages that matter for what comes later.
    """
    nearest: dict[PeerId | None, _Way] = {}
    measured = distance.measured(peer)
    have_common: set[PeerId | None] = set()
    """Who has a way at the common distance: no dearer one at that distance can beat it."""
    for cost, hops in arrived:
        before = hops[-1].peer if hops else None
        key = hops[0].peer if hops and hops[0].peer in apart else None
        if key in have_common and before not in measured:
            continue
        if (before, peer) in broken or any(hop.peer == peer for hop in hops):
            continue
        way_s, is_common = distance.to(before, peer)
        if is_common:
            have_common.add(key)
        if key not in nearest or cost + way_s < nearest[key][0] - 1e-12:
            nearest[key] = (cost + way_s, hops)
    return nearest.values()


def expected_block_s(stage: StageInfo, rows: int = 1) -> float:
    """One block's part of a pass that takes along `rows`, and all that run there already."""
    if stage.decode_tokens_per_s <= 0 or not len(stage.span):
        return UNKNOWN_BLOCK_S
    more_s = (stage.sessions + rows - 1) * stage.decode_row_s
    return (1 / stage.decode_tokens_per_s + more_s) / len(stage.span)


def uncovered(snapshot: SwarmSnapshot, *, joining: bool = False) -> list[Span]:
    """Runs of blocks that no online stage holds; with `joining`, none that will soon be either."""
    states = {StageState.ONLINE, StageState.JOINING} if joining else {StageState.ONLINE}
    stages = [stage for stage in snapshot.stages if stage.state in states]
    gaps: list[Span] = []
    for block in range(snapshot.num_blocks):
        if any(stage.span.start <= block < stage.span.end for stage in stages):
            continue
        if gaps and gaps[-1].end == block:
            gaps[-1] = Span(gaps[-1].start, block + 1)
        else:
            gaps.append(Span(block, block + 1))
    return gaps


def left_alone(snapshot: SwarmSnapshot, peer: PeerId, span: Span | None) -> list[int]:
    """Blocks that are served now, and would not be if `peer` served only `span` instead of its own.

    Of others that are about to move, who has a lower id goes first: its old blocks count no more.
    So two that leave the same blocks, and know of each other, never both go.

    Args:
        snapshot: The swarm.
        peer: Who moves.
        span: Where to; None: it serves nothing meanwhile.
    """

    def serves(stage: StageInfo, block: int) -> bool:
        goes_first = stage.next_span is not None and stage.peer < peer
        spans = (stage.span, stage.next_span) if goes_first else (stage.span,)
        return all(span is not None and span.start <= block < span.end for span in spans)

    online = [stage for stage in snapshot.stages if stage.state is StageState.ONLINE]
    own = [stage for stage in online if stage.peer == peer]
    others = [stage for stage in online if stage.peer != peer]
    return [
        block
        for stage in own
        for block in range(stage.span.start, stage.span.end)
        if not (span is not None and span.start <= block < span.end)
        and not any(serves(other, block) for other in others)
    ]


def _explain(snapshot: SwarmSnapshot) -> str:
    if not any(stage.state is StageState.ONLINE for stage in snapshot.stages):
        return "No stage of this model is online; wait for one to join or start serving here."
    gaps = uncovered(snapshot)
    if gaps:
        missing = ", ".join(str(gap) for gap in gaps)
        return f"Nobody serves blocks {missing} of this model; wait for a node to take them."
    return "The stages that could take this request have just failed; trying them again may help."
