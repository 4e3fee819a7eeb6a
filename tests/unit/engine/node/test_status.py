from __future__ import annotations

from engine.core.ids import PeerId
from engine.localapi.schema import TokenPart
from engine.node.status import time_of_token
from engine.planner.slowest import Part

OWN, OTHER = PeerId("QmOwn"), PeerId("QmTheOther7")


def said(parts: list[Part]) -> dict[str, object]:
    return {name: what for name, what in time_of_token(parts, OWN).items() if "bott" in name}


def test_every_part_of_a_token_is_told_in_order_to_three_digits() -> None:
    parts = [Part(OWN, None, 0.0201234), Part(OWN, OTHER, 0.03, is_measured=False)]
    assert time_of_token(parts, OWN)["token_parts"] == (
        TokenPart(peer=OWN, time_ms=20.1),
        TokenPart(peer=OWN, to=OTHER, time_ms=30, is_measured=False),
    )


def test_bottleneck_of_measured_parts_says_what_takes_how_long_of_a_token() -> None:
    parts = [Part(OWN, None, 0.02), Part(OWN, OTHER, 0.03), Part(OTHER, None, 0.04)]
    assert said(parts) == {
        "bottleneck": "…Other7 computes 40 of the 90 ms of each token.",
        "bottleneck_measured": True,
    }


def test_time_of_a_way_that_nobody_has_measured_is_called_so() -> None:
    parts = [Part(OWN, None, 0.02), Part(OWN, OTHER, 0.05, is_measured=False)]
    assert said(parts) == {
        "bottleneck": (
            "The way from this node to …Other7 takes about 50 of the about 70 ms of each token; "
            "it is not measured yet."
        ),
        "bottleneck_measured": False,
    }


def test_bottleneck_beside_a_way_that_nobody_has_measured_says_what_is_not_known() -> None:
    parts = [Part(OWN, None, 0.08), Part(OWN, OTHER, 0.05, is_measured=False)]
    assert said(parts) == {
        "bottleneck": (
            "This node computes 80 of the about 130 ms of each token; "
            "not every way between stages is measured yet."
        ),
        "bottleneck_measured": False,
    }


def test_nothing_is_said_of_a_token_whose_parts_are_unknown() -> None:
    assert time_of_token([], OWN) == {}
