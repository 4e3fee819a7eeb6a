from __future__ import annotations

from engine.models import families, layout


def test_every_family_that_a_source_accepts_can_be_computed() -> None:
    assert set(families.FAMILIES) == set(layout.FAMILIES)
