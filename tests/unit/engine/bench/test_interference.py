import pytest

from engine.bench.interference import interference
from engine.bench.measured import Crowded
from engine.core.errors import ConfigError


def test_intervals_beside_a_long_prompt_are_held_against_those_before():
    crowded = Crowded(before_s=[0.01] * 40, during_s=[0.015] * 37 + [0.04] * 3, prefill_s=2.0)
    found = interference(crowded, 8, 16_000)
    assert found.ratio_median == pytest.approx(1.5)
    assert found.during_ms.p95 == pytest.approx(40, rel=0.05)
    assert found.during_ms.max == pytest.approx(40)
    assert found.ratio_p95 > 3


def test_a_prompt_that_met_no_chat_is_no_measurement():
    with pytest.raises(ConfigError, match="ask for a longer one"):
        interference(Crowded(before_s=[0.01] * 40, during_s=[], prefill_s=0.1), 8, 10)
