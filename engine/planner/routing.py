"""Which stages a request goes through: the cheapest chain that covers every block once."""

from __future__ import annotations

from collections.abc import Mapping

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


def find_route(
    snapshot: SwarmSnapshot,
    *,
    need_tokens: int = 0,
    avoid: frozenset[PeerId] = frozenset(),
    link_s: Mapping[PeerId, float] | None = None,
) -> Route:
    """Find the chain of stages with the least expected step time.

    Shortest path over block boundaries: an edge is "stage p computes blocks [a, b)", its weight
    the time of these blocks on p plus the link to p. A stage may be used for a part of its span.
    Equal costs are decided by peer id, so that equal views give equal routes.

    Args:
        snapshot: The swarm.
        need_tokens: KV room that the request takes at every stage, in tokens.
        avoid: Peers that have just failed us.
        link_s: One-way time to each peer, in seconds, as measured from here; 0 for ourselves.

    Raises:
        NoRoute: Some block is served by nobody who could take the request.
    """
    links = link_s or {}
    usable = [
        stage
        for stage in sorted(snapshot.stages, key=lambda stage: stage.peer)
        if stage.state is StageState.ONLINE and stage.peer not in avoid
    ]
    boundaries = sorted(
        {0, snapshot.num_blocks}
        | {stage.span.start for stage in usable}
        | {stage.span.end for stage in usable}
    )
    best: dict[int, tuple[float, tuple[Hop, ...]]] = {0: (0.0, ())}
    for start in boundaries:
        if start not in best:
            continue
        cost, hops = best[start]
        for stage in usable:
            if not stage.span.start <= start < stage.span.end:
                continue
            if any(hop.peer == stage.peer for hop in hops):
                continue
            hop_s = links.get(stage.peer, UNKNOWN_LINK_S)
            if stage.kv_free_tokens < need_tokens:
                hop_s += FULL_S  # its announcement may be old: the last choice, but a choice
            for end in boundaries:
                if not start < end <= stage.span.end:
                    continue
                total = cost + hop_s + (end - start) * _block_s(stage)
                if end not in best or total < best[end][0] - 1e-12:
                    best[end] = (total, (*hops, Hop(stage.peer, Span(start, end))))
    if snapshot.num_blocks not in best or snapshot.num_blocks == 0:
        raise NoRoute(_explain(snapshot))
    return Route(best[snapshot.num_blocks][1])


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
