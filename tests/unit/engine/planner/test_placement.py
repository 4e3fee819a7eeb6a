from __future__ import annotations

import pytest

from engine.core.plans import Span
from engine.core.snapshot import StageState
from engine.planner.placement import choose_span, even_spans
from tests.support.builders import snapshot, stage_info


def test_first_node_takes_the_first_blocks_or_all_that_exist() -> None:
    assert choose_span(snapshot(30), 10) == Span(0, 10)
    assert choose_span(snapshot(30), 99) == Span(0, 30)


def test_joining_node_takes_the_blocks_that_are_served_worst() -> None:
    swarm = snapshot(30, stage_info("a", 0, 10, decode_tokens_per_s=50), stage_info("b", 20, 30))
    assert choose_span(swarm, 10) == Span(10, 20)


def test_stages_that_leave_do_not_count() -> None:
    swarm = snapshot(8, stage_info("a", 0, 4, state=StageState.DRAINING), stage_info("b", 4, 8))
    assert choose_span(swarm, 4) == Span(0, 4)


def test_no_blocks_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        choose_span(snapshot(8), 0)


@pytest.mark.parametrize(("blocks", "stages"), [(30, 1), (30, 3), (30, 4), (7, 7)])
def test_even_spans_cover_all_blocks_and_differ_by_one_at_most(blocks: int, stages: int) -> None:
    spans = even_spans(blocks, stages)
    assert [block for span in spans for block in range(span.start, span.end)] == list(range(blocks))
    assert max(map(len, spans)) - min(map(len, spans)) <= 1


def test_more_stages_than_blocks_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot be cut"):
        even_spans(3, 4)
