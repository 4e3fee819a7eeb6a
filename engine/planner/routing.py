"""Which stages a request goes through: the cheapest chain that covers every block once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.plans import Hop, Route, Span
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot

UNKNOWN_BLOCK_S = 0.002
"""Assumed decode time of one block on a stage that has not measured itself yet."""
UNKNOWN_LINK_S = 0.05
"""Assumed one-way time to a peer we have not met."""
FULL_S = 10.0
"""What a stage costs that said it has no room, as if a request had to wait this long there."""
ANEW_BLOCK_S = 1.0
"""What a block costs that has to compute a running request anew: more than any detour."""


Key = tuple[PeerId | None, PeerId | None]


def find_route(
    snapshot: SwarmSnapshot,
    *,
    need_tokens: int = 0,
    need_ram_tokens: int = 0,
    avoid: frozenset[PeerId] = frozenset(),
    link_s: Mapping[PeerId, float] | None = None,
    kept: Sequence[Hop] = (),
    broken: frozenset[tuple[PeerId, PeerId]] = frozenset(),
) -> Route:
    """Find the chain of stages with the least expected step time.

    Shortest path over block boundaries: an edge is "stage p computes blocks [a, b)", its weight
    the time of these blocks on p plus the link to p. A stage may be used for a part of its span.
    Equal costs are decided by peer id, so that equal views give equal routes.

    For a request that has lost a part of its route, the hops that live keep their blocks, and the
    cheapest others fill the gaps: what has to be computed anew counts most. When that leads
    nowhere, everything is computed anew.

    Args:
        snapshot: The swarm.
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
    edges = [(hop.peer, hop.span, 0.0, 0.0) for hop in kept]
    boundaries = sorted(
        {0, snapshot.num_blocks}
        | {stage.span.start for stage in usable}
        | {stage.span.end for stage in usable}
        | {hop.span.start for hop in kept}
        | {hop.span.end for hop in kept}
    )
    for stage in usable:
        hop_s = links.get(stage.peer, UNKNOWN_LINK_S)
        if stage.kv_free_tokens < need_tokens or stage.kv_ram_free_tokens < need_ram_tokens:
            hop_s += FULL_S  # its announcement may be old: the last choice, but a choice
        block_s = _block_s(stage) + (ANEW_BLOCK_S if kept else 0.0)
        within = [cut for cut in boundaries if stage.span.start <= cut <= stage.span.end]
        edges += [
            (stage.peer, Span(start, end), hop_s, block_s) for start, end in combinations(within, 2)
        ]
    starting: dict[int, list[tuple[PeerId, Span, float, float]]] = defaultdict(list)
    for edge in edges:
        starting[edge[1].start].append(edge)
    # Ways that end or begin at a broken link are remembered apart: what may follow depends on it.
    senders, receivers = {pair[0] for pair in broken}, {pair[1] for pair in broken}
    best: dict[int, dict[Key, tuple[float, tuple[Hop, ...]]]] = {0: {(None, None): (0.0, ())}}
    for boundary in boundaries:
        for cost, hops in best.get(boundary, {}).values():
            for peer, span, hop_s, block_s in starting[boundary]:
                if any(hop.peer == peer for hop in hops):
                    continue
                if hops and (hops[-1].peer, peer) in broken:
                    continue
                last = span.end == snapshot.num_blocks
                if last and hops and (peer, hops[0].peer) in broken:
                    continue  # the ring does not close
                total = cost + hop_s + len(span) * block_s
                first = hops[0].peer if hops else peer
                key = (peer if peer in senders else None, first if first in receivers else None)
                others = best.setdefault(span.end, {})
                if key not in others or total < others[key][0] - 1e-12:
                    others[key] = (total, (*hops, Hop(peer, span)))
    found = best.get(snapshot.num_blocks, {}) if snapshot.num_blocks else {}
    if not found and kept:
        return find_route(
            snapshot,
            need_tokens=need_tokens,
            need_ram_tokens=need_ram_tokens,
            avoid=avoid,
            link_s=link_s,
            broken=broken,
        )
    if not found:
        raise NoRoute(_explain(snapshot))
    return Route(min(found.values(), key=lambda label: label[0])[1])


def _block_s(stage: StageInfo) -> float:
    if stage.decode_tokens_per_s <= 0 or not len(stage.span):
        return UNKNOWN_BLOCK_S
    return 1 / stage.decode_tokens_per_s / len(stage.span)


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


def _explain(snapshot: SwarmSnapshot) -> str:
    if not any(stage.state is StageState.ONLINE for stage in snapshot.stages):
        return "No stage of this model is online; wait for one to join or start serving here."
    gaps = uncovered(snapshot)
    if gaps:
        missing = ", ".join(str(gap) for gap in gaps)
        return f"Nobody serves blocks {missing} of this model; wait for a node to take them."
    return "The stages that could take this request have just failed; trying them again may help."
