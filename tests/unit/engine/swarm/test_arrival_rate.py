from __future__ import annotations

import pytest

from engine.swarm.arrival_rate import PIECE_BYTES, ArrivalRate

LATENCY_S = 1e-5
"""What reading takes that does not wait."""


def frame(
    rate_bytes_per_s: float, num_bytes: int, *, burst_bytes: int = 32 << 10, at_once: int = 32 << 10
) -> list[tuple[float, float, int]]:
    """How a frame's pieces are read from a line that hands over bursts, the first with the header."""
    now_s, pieces, read = 5.0, [], 0
    while read < num_bytes:
        size = min(PIECE_BYTES, num_bytes - read)
        began_s, read = now_s, read + size
        bursts = -(-max(0, read - at_once) // burst_bytes)
        last = min(at_once + bursts * burst_bytes, num_bytes)
        there_s = 5.0 + max(0, last - at_once) / rate_bytes_per_s
        now_s = max(now_s + LATENCY_S, there_s)
        pieces.append((began_s, now_s, size))
    return pieces


@pytest.mark.parametrize("rate_bytes_per_s", [2.5e6, 15.6e6, 62.5e6])
@pytest.mark.parametrize("num_bytes", [64 << 10, 129 << 10, 400_000, 3_000_000])
@pytest.mark.parametrize("burst_bytes", [1400, 32 << 10, 256 << 10])
def test_rate_of_a_line_is_found_whatever_the_bursts(rate_bytes_per_s, num_bytes, burst_bytes):
    rate = ArrivalRate()
    for _ in range(5):
        rate.add(frame(rate_bytes_per_s, num_bytes, burst_bytes=burst_bytes))
    assert 0.7 * rate_bytes_per_s < rate.bytes_per_s < 1.3 * rate_bytes_per_s


def test_one_frame_is_not_enough_and_the_sender_is_told_when_it_is():
    rate = ArrivalRate()
    told = [rate.add(frame(15.6e6, 129 << 10)) for _ in range(6)]
    assert told == [False, False, True, False, False, False]


def test_frame_that_was_there_already_says_nothing_of_the_line():
    rate = ArrivalRate()
    pieces = [(LATENCY_S * n, LATENCY_S * (n + 1), PIECE_BYTES) for n in range(8)]
    assert not any(rate.add(pieces) for _ in range(5))
    assert rate.bytes_per_s == 0


def test_cross_traffic_and_slow_starts_do_not_hide_the_line():
    rate = ArrivalRate()
    for number in range(16):
        rate.add(frame(3e6 if number % 2 else 15.6e6, 129 << 10))
    assert rate.bytes_per_s > 14e6


def test_line_that_becomes_slow_is_noticed():
    rate = ArrivalRate()
    for _ in range(16):
        rate.add(frame(60e6, 129 << 10))
    told = [rate.add(frame(2.5e6, 129 << 10)) for _ in range(16)]
    assert any(told)
    assert rate.bytes_per_s < 4e6


def test_small_frames_and_those_that_nobody_waited_for_are_not_measured():
    assert not ArrivalRate.is_worth_measuring(1.0, 20_000)
    assert not ArrivalRate.is_worth_measuring(1e-5, 200_000)
    assert ArrivalRate.is_worth_measuring(1e-3, 200_000)
