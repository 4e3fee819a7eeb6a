"""Which stages a request goes through: the cheapest chain that covers every block once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.plans import Hop, Route, Span
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.planner.cheapest import Offer, cheapest
from engine.planner.distances import Distances

UNKNOWN_BLOCK_S = 0.002
"""Assumed decode time of one block on a stage that has not measured itself yet."""
FULL_S = 10.0
"""What a stage costs that said it has no room, as if a request had to wait this long there."""
ANEW_BLOCK_S = 1.0
"""What a block costs that has to compute a running request anew: more than any detour."""


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
    held = {hop.peer for hop in kept}
    usable = [
        stage
        for stage in snapshot.stages
        if stage.state is StageState.ONLINE and stage.peer not in avoid and stage.peer not in held
    ]
    offers = [Offer(hop.peer, hop.span, 0.0, is_whole=True) for hop in kept]
    for stage in usable:
        # An announcement may be old: a full stage is the last choice, but a choice.
        is_full = stage.kv_free_tokens < need_tokens or stage.kv_ram_free_tokens < need_ram_tokens
        block_s = expected_block_s(stage, rows) + (ANEW_BLOCK_S if kept else 0.0)
        offers.append(Offer(stage.peer, stage.span, block_s, FULL_S if is_full else 0.0))
    distance = Distances(snapshot, link_s or {})
    found = cheapest(
        snapshot.num_blocks, sorted(offers, key=lambda offer: offer.peer), distance, broken
    )
    if found is None and kept:
        return find_route(
            snapshot,
            rows=rows,
            need_tokens=need_tokens,
            need_ram_tokens=need_ram_tokens,
            avoid=avoid,
            link_s=link_s,
            broken=broken,
        )
    if found is None:
        raise NoRoute(_explain(snapshot))
    return Route(found)


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
    return " ".join(filter(None, (_gaps(snapshot), protocol_words(snapshot))))


def protocol_words(snapshot: SwarmSnapshot) -> str:
    """What to update so that more stages understand one another; empty when all do."""
    if snapshot.stages_ahead:
        return (
            f"{_stages(snapshot.stages_ahead)} a newer protocol than this version of Shoal knows, "
            "so update it."
        )
    if snapshot.stages_behind:
        return (
            f"{_stages(snapshot.stages_behind)} an older protocol than this version of Shoal still "
            "knows, so their owners must update them."
        )
    return ""


def _stages(count: int) -> str:
    return "One stage speaks" if count == 1 else f"{count} stages speak"


def _gaps(snapshot: SwarmSnapshot) -> str:
    if not any(stage.state is StageState.ONLINE for stage in snapshot.stages):
        return "No stage of this model is online; wait for one to join or start serving here."
    gaps = uncovered(snapshot)
    if gaps:
        missing = ", ".join(str(gap) for gap in gaps)
        return f"Nobody serves blocks {missing} of this model; wait for a node to take them."
    return "The stages that could take this request have just failed; trying them again may help."
