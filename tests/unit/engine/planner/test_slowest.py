from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.ids import PeerId
from engine.core.plans import Hop, Route, Span
from engine.planner.slowest import Part, parts
from tests.support.builders import snapshot, stage_info

A, B = PeerId("A"), PeerId("B")


def test_parts_of_a_token_are_what_the_stages_and_the_ways_between_them_take() -> None:
    swarm = replace(
        snapshot(
            4,
            stage_info("A", 0, 2, decode_tokens_per_s=50.0),
            stage_info("B", 0, 4, decode_tokens_per_s=100.0, sessions=3, decode_row_s=0.002),
        ),
        link_s={A: {B: 0.03}, B: {A: 0.01}},
    )
    whole = Route((Hop(B, Span(0, 4)),))
    assert [part.time_s for part in parts(whole, swarm, {})] == pytest.approx([0.016])
    both = Route((Hop(A, Span(0, 2)), Hop(B, Span(2, 4))))
    assert parts(both, swarm, {}) == [
        Part(A, None, pytest.approx(0.02)),
        Part(A, B, 0.03),
        Part(B, None, pytest.approx(0.008)),
        Part(B, A, 0.01),
    ]


def test_way_that_nobody_has_measured_is_marked() -> None:
    swarm = replace(
        snapshot(
            4,
            stage_info("A", 0, 2, decode_tokens_per_s=50.0),
            stage_info("B", 2, 4, decode_tokens_per_s=50.0),
        ),
        link_s={A: {B: 0.03}},
    )
    both = Route((Hop(A, Span(0, 2)), Hop(B, Span(2, 4))))
    assert [part.is_measured for part in parts(both, swarm, {B: 0.01})] == [True] * 4
    assert [part.is_measured for part in parts(both, replace(swarm, link_s={}), {B: 0.01})] == [
        True,
        False,
        True,
        False,
    ]


def test_nothing_is_said_while_a_stage_has_not_measured_itself() -> None:
    swarm = snapshot(4, stage_info("A", 0, 4))
    assert parts(Route((Hop(A, Span(0, 4)),)), swarm, {}) == []
