from __future__ import annotations

import pytest

from engine.swarm.arrival_rate import ArrivalRate

LATENCY_S = 1e-5
"""What reading takes that does not wait."""
HEADER_BYTES = 36


class Line:
    """A line that hands over bursts of bytes, and a reader at its end."""

    def __init__(self, rate: ArrivalRate, rate_bytes_per_s: float, burst_bytes: int) -> None:
        self.rate = rate
        self.rate_bytes_per_s = rate_bytes_per_s
        self._burst_bytes = burst_bytes
        self._now_s = 100.0
        self._read = 0

    def train(self, *sizes: int, idle_s: float = 1.0) -> list[bool]:
        """Frames back to back, after a pause; whether each made the rate worth telling."""
        began_s, self._read, total = self._now_s + idle_s, 0, sum(sizes) + HEADER_BYTES * len(sizes)
        told = []
        for number, size in enumerate(sizes):
            self._take(HEADER_BYTES, began_s, total)
            left = size
            while left:
                piece = min(left, self.rate.piece_bytes)
                self._take(piece, began_s, total)
                left -= piece
            told.append(self.rate.end_frame(more_follows=number < len(sizes) - 1))
        return told

    def _take(self, num_bytes: int, began_s: float, total: int) -> None:
        self._read += num_bytes
        bursts = -(-self._read // self._burst_bytes)
        there_s = began_s + min(bursts * self._burst_bytes, total) / self.rate_bytes_per_s
        began_reading_s, self._now_s = self._now_s, max(self._now_s + LATENCY_S, there_s)
        self.rate.read(began_reading_s, self._now_s, num_bytes)


def line(mbit_per_s: float, *, burst_bytes: int = 32 << 10) -> Line:
    return Line(ArrivalRate(), mbit_per_s * 1e6 / 8, burst_bytes)


@pytest.mark.parametrize("mbit_per_s", [20, 125, 500, 1500])
@pytest.mark.parametrize("burst_bytes", [1400, 16 << 10, 64 << 10])
@pytest.mark.parametrize("sizes", [[1_200_000], [130_000] * 9, [72_000] * 12], ids=str)
def test_rate_of_a_line_is_found_whatever_the_bursts(mbit_per_s, burst_bytes, sizes):
    measured = line(mbit_per_s, burst_bytes=burst_bytes)
    for _ in range(5):
        measured.train(*sizes)
    found = measured.rate.bytes_per_s
    if mbit_per_s > 1000 and not found:
        return  # never awaited: that fast it need not be known
    assert 0.8 * measured.rate_bytes_per_s < found < 1.25 * measured.rate_bytes_per_s


def test_single_frames_tell_the_rate_of_a_slow_line():
    measured = line(20)
    for _ in range(5):
        measured.train(130_000)
    assert 0.8 * 2.5e6 < measured.rate.bytes_per_s < 1.2 * 2.5e6


def test_what_comes_all_at_once_says_nothing():
    measured = line(1000, burst_bytes=1 << 20)
    for _ in range(5):
        measured.train(72_000)
    assert measured.rate.bytes_per_s == 0


def test_small_frames_say_nothing_however_slowly_they_come():
    measured = line(0.1, burst_bytes=50)
    for _ in range(5):
        measured.train(300)
    assert measured.rate.bytes_per_s == 0


def test_pauses_of_the_sender_are_not_taken_for_the_line():
    measured = line(125)
    for number in range(30):
        measured.train(130_000, 130_000, idle_s=0.25 if number else 1)
    assert measured.rate.bytes_per_s > 0.8 * 125e6 / 8


def test_few_trains_are_not_enough_and_the_sender_is_told_when_they_are():
    measured = line(125)
    told = [measured.train(130_000, 130_000)[-1] for _ in range(6)]
    assert told == [False, False, True, False, False, False]


def test_cross_traffic_and_slow_starts_do_not_hide_the_line():
    measured = line(125)
    for number in range(20):
        measured.rate_bytes_per_s = (125 if number % 4 == 0 else 20) * 1e6 / 8
        measured.train(130_000, 130_000)
    assert measured.rate.bytes_per_s > 0.8 * 125e6 / 8


def test_line_that_becomes_slow_is_noticed():
    measured = line(500)
    for _ in range(16):
        measured.train(400_000)
    measured.rate_bytes_per_s = 2.5e6
    told = [measured.train(400_000)[-1] for _ in range(16)]
    assert any(told)
    assert measured.rate.bytes_per_s < 4e6


def test_pieces_are_small_only_while_something_is_measured():
    measured = line(125)
    large = measured.rate.piece_bytes
    assert large > 100_000
    measured.rate.read(0.0, 1.0, HEADER_BYTES)
    assert measured.rate.piece_bytes < large / 10
    for _ in range(3):
        measured.rate.end_frame(more_follows=False)
    assert measured.rate.piece_bytes == large
