from __future__ import annotations

from typing import Any

from app.pipeline_presenters import PipelineView, pipeline_view
from engine.localapi.schema import LinkStatus, PipelineStage, TokenPart
from tests.support.app_states import status

A, ME, B = "Qmxaaaaaa", "Qmxmmmmmm", "Qmxbbbbbb"
STAGES = (
    PipelineStage(peer=A, start=0, end=10, is_self=False),
    PipelineStage(peer=ME, start=10, end=20, is_self=True),
    PipelineStage(peer=B, start=20, end=30, is_self=False),
)
PARTS = (
    TokenPart(peer=A, time_ms=14.2),
    TokenPart(peer=A, to=ME, time_ms=11.6),
    TokenPart(peer=ME, time_ms=50),
    TokenPart(peer=ME, to=B, time_ms=38.4),
    TokenPart(peer=B, time_ms=0.42),
    TokenPart(peer=B, to=A, time_ms=9, is_measured=False),
)


def drawn(**fields: Any) -> PipelineView:
    view = pipeline_view(status(**{"swarm": "reef", "plan": STAGES} | fields), str)
    assert view is not None
    return view


def test_boxes_name_the_nodes_their_blocks_and_their_time() -> None:
    view = drawn(token_parts=PARTS)
    assert [(box.name, box.blocks, box.time, box.is_self) for box in view.stages] == [
        ("…aaaaaa", "Blocks 0–9", "14 ms", False),
        ("This computer", "Blocks 10–19", "50 ms", True),
        ("…bbbbbb", "Blocks 20–29", "0.4 ms", False),
    ]


def test_arrows_tell_time_and_path_where_they_are_known() -> None:
    links = (
        LinkStatus(peer=A, path="direct", rtt_ms=23, sent_bytes=0),
        LinkStatus(peer=B, path="relayed", relay=A, rtt_ms=80, sent_bytes=0),
    )
    arrows = drawn(token_parts=PARTS, links=links).arrows
    assert [(arrow.time, arrow.path) for arrow in arrows] == [
        ("12 ms", "direct"),
        ("38 ms", "through …aaaaaa"),
        ("≈ 9.0 ms", ""),  # nobody has measured it, and it is a way between others
    ]


def test_what_takes_longest_is_marked_and_nothing_else() -> None:
    view = drawn(token_parts=PARTS)
    assert [box.is_slowest for box in view.stages] == [False, True, False]
    assert not any(arrow.is_slowest for arrow in view.arrows)
    slow_way = (*PARTS[:3], TokenPart(peer=ME, to=B, time_ms=380), *PARTS[4:])
    view = drawn(token_parts=slow_way)
    assert [arrow.is_slowest for arrow in view.arrows] == [False, True, False]
    assert not any(box.is_slowest for box in view.stages)


def test_nothing_is_marked_while_no_times_are_known() -> None:
    view = drawn()
    assert [box.time for box in view.stages] == ["", "", ""]
    assert not any(part.is_slowest for part in (*view.stages, *view.arrows))


def test_stage_that_is_alone_has_no_arrows_and_is_not_called_slow() -> None:
    alone = (PipelineStage(peer=ME, start=0, end=30, is_self=True),)
    view = drawn(plan=alone, token_parts=(TokenPart(peer=ME, time_ms=8),))
    assert view.arrows == ()
    assert [(box.time, box.is_slowest) for box in view.stages] == [("8.0 ms", False)]


def test_blocks_that_nobody_holds_are_shown_as_missing() -> None:
    held = (
        PipelineStage(peer=A, start=2, end=12, is_self=False),
        PipelineStage(peer=ME, start=10, end=20, is_self=True),
        PipelineStage(peer=B, start=21, end=25, is_self=False),
    )
    view = drawn(plan=(), spares=held)
    assert [(box.start, box.end) for box in view.missing] == [(0, 2), (20, 21), (25, 30)]
    assert view.caption == (
        "Nobody holds blocks 0–1, 20, 25–29, so nothing can be answered until a node with them "
        "joins."
    )


def test_blocks_held_without_a_way_through_them_are_not_called_missing() -> None:
    view = drawn(plan=(), spares=STAGES)
    assert view.missing == ()
    assert view.caption == "All blocks are held, but no way through them is open now."


def test_picture_is_told_in_words_too() -> None:
    spare = (PipelineStage(peer="Qmxcccccc", start=0, end=1, is_self=False),)
    view = drawn(token_parts=PARTS, spares=spare)
    assert view.as_text.splitlines() == [
        "1. …aaaaaa, Blocks 0–9, 14 ms",
        "2. This computer, Blocks 10–19, 50 ms",
        "3. …bbbbbb, Blocks 20–29, 0.4 ms",
        "Beside it: …cccccc, Block 0",
        "Most of the time goes into the blocks of this computer: 50 ms of ≈ 124 ms for each token. "
        "Not every way is measured yet.",
    ]


def test_there_is_no_picture_before_anybody_holds_anything() -> None:
    assert pipeline_view(status(plan=(), spares=()), str) is None
    assert pipeline_view(None, str) is None
