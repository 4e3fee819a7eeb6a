from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.planner.catalogue import missing_bytes


@pytest.mark.parametrize(
    ("rooms", "missing"),
    [
        ([100], 0),
        ([60, 40], 0),  # 50 for blocks on one, 40 on the other
        ([55, 45], 10),  # no block is divided
        ([50], 50),
        ([], 100),
        ([4], 96),
    ],
)
def test_what_is_missing_counts_whole_blocks_and_the_ends(rooms, missing):
    assert missing_bytes(rooms, num_blocks=9, block_bytes=10, ends_bytes=10) == missing


@given(st.lists(st.integers(0, 500), max_size=6), st.integers(1, 20), st.integers(1, 50))
def test_more_room_never_makes_more_missing(rooms, blocks, block_bytes):
    before = missing_bytes(rooms, blocks, block_bytes, 30)
    assert missing_bytes([*rooms, 100], blocks, block_bytes, 30) <= before
    assert missing_bytes([10**9], blocks, block_bytes, 30) == 0
