from __future__ import annotations

import pytest

from engine.core.generation import DraftMode
from engine.speculation.message_sizes import (
    disco_pays_below_bytes_per_s,
    down_bytes,
    up_bytes,
)

OPT_VOCAB = 50_272


@pytest.mark.parametrize(
    ("mode", "up", "down"),
    [
        (DraftMode.DSD, 402_192, 8),  # 402.2 kB
        (DraftMode.DSSD, 24, 100_548),  # 100.5 kB and the count
        (DraftMode.DISCO, 24, 8),
        (DraftMode.SHARED, 16, 8),
    ],
)
def test_a_round_of_four_takes_what_the_paper_says(mode: DraftMode, up: int, down: int) -> None:
    assert up_bytes(mode, 4, OPT_VOCAB) == up
    assert down_bytes(mode, OPT_VOCAB, rejected=True) == down
    assert down_bytes(mode, OPT_VOCAB, rejected=False) == 8


def test_a_replica_of_10_ms_pays_below_80_mbit_per_s() -> None:
    assert disco_pays_below_bytes_per_s(OPT_VOCAB, 0.010) * 8 == pytest.approx(80.4e6, rel=1e-3)
