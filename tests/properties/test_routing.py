"""Routes held against every possible one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.plans import Hop, Span
from engine.core.snapshot import StageInfo, SwarmSnapshot
from engine.planner.routing import expected_block_s, find_route
from tests.support.builders import snapshot, stage_info

NUM_BLOCKS = 6
Pairs = frozenset[tuple[PeerId, PeerId]]


def every_ring(
    stages: tuple[StageInfo, ...], broken: Pairs, so_far: tuple[Hop, ...] = ()
) -> Iterator[tuple[Hop, ...]]:
    """All ways that use no stage twice and no broken pair, and change where some span ends or begins."""
    cuts = {cut for stage in stages for cut in (stage.span.start, stage.span.end)}
    at = so_far[-1].span.end if so_far else 0
    if at == NUM_BLOCKS:
        if len(so_far) == 1 or (so_far[-1].peer, so_far[0].peer) not in broken:
            yield so_far
        return
    for stage in stages:
        if stage.peer in {hop.peer for hop in so_far} or not stage.span.start <= at:
            continue
        if so_far and (so_far[-1].peer, stage.peer) in broken:
            continue
        for end in sorted(cut for cut in cuts if at < cut <= stage.span.end):
            yield from every_ring(stages, broken, (*so_far, Hop(stage.peer, Span(at, end))))


def cost_s(ring: tuple[Hop, ...], swarm: SwarmSnapshot, here_s: Mapping[PeerId, float]) -> float:
    """Of a token's way round; lines that nobody has measured are as long as the client's."""
    blocks_s = sum(len(h.span) * expected_block_s(swarm.stage(h.peer)) for h in ring)
    if len(ring) == 1:
        return blocks_s + here_s[ring[0].peer]
    peers = [hop.peer for hop in ring]
    pairs = [*pairwise(peers), (peers[-1], peers[0])]
    return blocks_s + sum(
        swarm.link_s[one].get(other, swarm.link_s[other].get(one, here_s[other]))
        for one, other in pairs
    )


@given(data=st.data())
def test_route_is_the_cheapest_of_all_through_parts_of_spans_of_one_length(
    data: st.DataObject,
) -> None:
    length = data.draw(st.integers(2, 6))
    starts = data.draw(st.lists(st.integers(0, NUM_BLOCKS - length), min_size=1, max_size=5))
    times = st.floats(0.001, 0.2)
    stages = tuple(
        stage_info(name, start, start + length, decode_tokens_per_s=1 / data.draw(times))
        for name, start in zip("abcde", starts, strict=False)
    )
    peers = [stage.peer for stage in stages]
    here_s = {peer: data.draw(times) for peer in peers}
    link_s = {
        one: {other: data.draw(times) for other in peers if data.draw(st.booleans())}
        for one in peers
    }
    broken = frozenset(data.draw(st.sets(st.tuples(*[st.sampled_from(peers)] * 2), max_size=3)))
    swarm = replace(snapshot(NUM_BLOCKS, *stages), link_s=link_s)
    costs = [cost_s(ring, swarm, here_s) for ring in every_ring(stages, broken)]
    if not costs:
        with pytest.raises(NoRoute):
            find_route(swarm, link_s=here_s, broken=broken)
        return
    found = find_route(swarm, link_s=here_s, broken=broken).hops
    assert found in list(every_ring(stages, broken))
    assert cost_s(found, swarm, here_s) == pytest.approx(min(costs))
    backwards = replace(swarm, stages=stages[::-1])
    assert find_route(backwards, link_s=here_s, broken=broken).hops == found
