from __future__ import annotations

import pytest

from engine.codec.adaptive import Estimate, History, pays

MBIT = 1e6 / 8
SPEEDS = {
    # ratio, encoding and decoding in bytes per second: as measured on one core at 400 KB
    "bfloat16": (0.67, 1000e6, 1450e6),
    "float16": (0.855, 970e6, 1140e6),
    "float32": (0.86, 900e6, 1100e6),
    "rounded": (0.45, 300e6, 500e6),
    "slow machine": (0.67, 100e6, 150e6),
}


def estimate(kind: str) -> Estimate:
    ratio, encode, decode = SPEEDS[kind]
    return Estimate(ratio, 1 / encode + 1 / decode)


@pytest.mark.parametrize(
    ("kind", "mbit_per_s", "expected"),
    [
        ("bfloat16", 45_000, False),
        ("bfloat16", 1_000, False),
        ("bfloat16", 500, True),
        ("bfloat16", 250, True),
        ("bfloat16", 20, True),
        ("float16", 1_000, False),
        ("float16", 500, True),
        ("float16", 20, True),
        ("float32", 500, True),
        ("float32", 1_000, False),
        ("rounded", 1_000, False),
        ("rounded", 500, True),
        ("slow machine", 500, False),
        ("slow machine", 125, True),
    ],
)
def test_encoding_is_used_where_it_saves_more_time_than_it_takes(kind, mbit_per_s, expected):
    assert pays(estimate(kind), mbit_per_s * MBIT, is_on=False) is expected


@pytest.mark.parametrize("kind", SPEEDS)
def test_decision_falls_only_once_as_the_line_gets_faster(kind):
    decisions = [pays(estimate(kind), mbit * MBIT, is_on=False) for mbit in range(5, 2000, 5)]
    assert decisions == sorted(decisions, reverse=True)


def test_rows_that_do_not_get_smaller_are_left_raw_on_any_line():
    assert not pays(Estimate(1.0, 1e-9), 1.0, is_on=False)
    assert not pays(Estimate(1.0, 1e-9), 1.0, is_on=True)


def test_small_changes_of_the_line_change_nothing_in_either_state():
    even = Estimate(0.8, 2e-9)
    bandwidth = 0.2 / 2e-9  # gains just what it costs
    for factor in (0.95, 1.0, 1.05):
        assert pays(even, bandwidth * factor, is_on=True)
        assert not pays(even, bandwidth * factor, is_on=False)


def test_nothing_is_encoded_while_the_line_is_unknown_or_fast():
    history = History()
    assert not any(history.should_encode(None, None) for _ in range(1000))
    assert not any(history.should_encode(200e6, None) for _ in range(1000))


def test_first_payloads_are_encoded_to_learn_what_it_brings():
    history = History()
    for _ in range(3):
        assert history.should_encode(500 * MBIT, None)
        history.add(1_000_000, 990_000, 0.01)
    assert not history.should_encode(500 * MBIT, None)


def test_what_is_left_raw_is_tried_again_now_and_then_and_taken_up_when_it_pays():
    history = History()
    for _ in range(3):
        history.add(1_000_000, 990_000, 0.01)
    tries = 0
    for _ in range(1000):
        if history.should_encode(500 * MBIT, None):
            tries += 1
            history.add(1_000_000, 990_000, 0.01)
    assert 2 <= tries <= 5
    for _ in range(15):
        history.add(1_000_000, 600_000, 0.001)
    assert all(history.should_encode(500 * MBIT, None) for _ in range(50))


def test_one_interrupted_payload_does_not_switch_encoding_off():
    history = History()
    for _ in range(10):
        history.add(100_000, 67_000, 1e-4)
    assert history.should_encode(250 * MBIT, None)
    history.add(100_000, 67_000, 0.5)
    assert history.should_encode(250 * MBIT, None)


def test_receiver_that_decodes_slowly_counts():
    history = History()
    for _ in range(5):
        history.add(100_000, 67_000, 1e-4)
    assert history.should_encode(250 * MBIT, 1 / 1000e6)
    assert not history.should_encode(250 * MBIT, 1 / 50e6)
