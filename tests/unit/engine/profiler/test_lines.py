"""The pure parts of measuring lines."""

import math

import pytest

from engine.core.ids import PeerId
from engine.localapi.measurements import PeerMeasurement
from engine.node.measuring import own_downlink, own_uplink
from engine.profiler.arrivals import Arrivals, mean_rate
from engine.profiler.budget import ProbeBudget
from engine.profiler.growth import Growth
from engine.protocol.probes import MAX_TRAIN_BYTES, Filler, Phase
from tests.support.measured import quantity


def arrivals(steady_from: int | None, *gaps_s: float) -> Arrivals:
    """Frames of 1000 bytes, one after each gap."""
    train, now_s = Arrivals(1), 0.0
    for number, gap_s in enumerate(gaps_s):
        now_s += gap_s
        steady = steady_from is not None and number >= steady_from
        train.add(Filler(1, Phase.STEADY if steady else Phase.GROWING), 1000, now_s)
    last = Phase.LAST_UNSTEADY if steady_from is None else Phase.LAST
    train.add(Filler(1, last), 45, now_s)
    return train


def test_the_rate_is_that_of_the_steady_part():
    train = arrivals(10, *[0.1] * 10, *[0.001] * 41)
    assert mean_rate(train.rates_bytes_per_s()) == pytest.approx(1e6, rel=0.1)
    assert train.is_steady


def test_without_a_steady_part_it_is_that_of_the_second_half():
    train = arrivals(None, *[0.1] * 20, *[0.001] * 20)
    assert mean_rate(train.rates_bytes_per_s()) == pytest.approx(1e6, rel=0.1)
    assert not train.is_steady


def test_a_pause_of_the_receiver_hardly_moves_the_mean():
    steady = arrivals(0, *[0.001] * 81)
    # It slept for twenty frames, then found them all at once.
    paused = arrivals(0, *[0.001] * 40, 0.02, *[1e-6] * 20, *[0.001] * 20)
    means = [mean_rate(train.rates_bytes_per_s()) for train in (steady, paused)]
    assert means[1] == pytest.approx(means[0], rel=0.1)


def test_two_frames_say_nothing():
    assert arrivals(None, 0.1).rates_bytes_per_s() == ()


@pytest.mark.parametrize(
    ("rate", "rtt_s"), [(250e3, 0.04), (2.5e6, 0.2), (15.6e6, 0.15), (6e7, 0.05)]
)
def test_just_enough_is_on_its_way_to_keep_a_line_busy(rate: float, rtt_s: float):
    growth, now_s, sent, arrived = Growth(rtt_s, 0.0), 0.0, 0.0, 0.0
    departures: list[tuple[float, float]] = []
    free_s = 0.0
    while growth.steady_since_s is None:
        now_s += 0.002
        assert now_s < 6
        room = growth.limit_bytes - (sent - arrived)
        if room > 0:
            free_s = max(free_s, now_s) + room / rate
            departures.append((free_s + rtt_s, room))
            sent += room
        while departures and departures[0][0] <= now_s:
            arrived += departures.pop(0)[1]
        growth.arrived(int(arrived), now_s)
    needed = rate * rtt_s
    assert needed <= growth.limit_bytes < 5 * needed + (400 << 10)


def test_a_peer_has_a_budget_that_fills_up_again_and_so_have_all_together():
    budget, peer = ProbeBudget(), PeerId("a")
    taken = [budget.take(peer, MAX_TRAIN_BYTES, 0.0) for _ in range(6)]
    assert taken == [True] * 4 + [False] * 2
    assert budget.take(peer, MAX_TRAIN_BYTES, 300.0)
    crowd = [budget.take(PeerId(f"p{n}"), MAX_TRAIN_BYTES, 300.0) for n in range(100)]
    assert 10 < sum(crowd) < 20


def peers(*rates: tuple[float, float]) -> list[PeerMeasurement]:
    return [
        PeerMeasurement.model_validate(
            {
                "peer": f"p{number}",
                "rtt_s": quantity(0.05),
                "uplink_bytes_per_s": quantity(up, "B/s"),
                "downlink_bytes_per_s": quantity(down, "B/s"),
            }
        )
        for number, (up, down) in enumerate(rates)
    ]


def test_our_own_line_is_as_fast_as_seen_but_not_by_one_peers_word():
    honest_and_liar = peers((1e6, 3e6), (1.1e6, 9e6), (9e9, 1e6))
    assert own_uplink(honest_and_liar).value == 1.1e6
    assert own_downlink(honest_and_liar).value == 9e6
    assert own_uplink([]) is None
    assert not math.isnan(own_uplink(peers((5.0, 1.0))).value)
