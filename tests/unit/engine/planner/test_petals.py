from __future__ import annotations

from random import Random

import numpy as np

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.planner.petals import (
    Server,
    better_span,
    block_rates,
    join,
    least_served,
    settle,
)


def server(peer: str, start: int, end: int, tokens_per_s: float = 1.0) -> Server:
    return Server(PeerId(peer), Span(start, end), tokens_per_s)


def test_worst_served_run_is_the_one_whose_sorted_rates_are_least() -> None:
    assert least_served(np.array([3.0, 1.0, 5.0, 2.0, 2.0]), 2) == 0  # (1, 3) before (1, 5), (2, 2)
    assert least_served(np.array([5.0, 1.0, 2.0, 1.0]), 2) == 1  # the first of two equals


def test_worst_served_run_is_found_as_by_comparing_them_all() -> None:
    rng = Random(4)
    for _ in range(50):
        rates = np.array([rng.randint(0, 3) for _ in range(rng.randint(1, 12))], dtype=float)
        length = rng.randint(1, len(rates))
        starts = range(len(rates) - length + 1)
        worst = min(starts, key=lambda start: (sorted(rates[start : start + length]), start))
        assert least_served(rates, length) == worst


def test_newcomers_close_the_gap_before_they_thicken() -> None:
    servers = [server("a", 0, 4, 1.0), server("b", 8, 12, 1.0)]
    assert join(12, servers, PeerId("c"), 4, 1.0).span == Span(4, 8)


def test_newcomer_with_room_for_more_than_the_model_takes_it_whole() -> None:
    assert join(12, [], PeerId("a"), 99, 1.0).span == Span(0, 12)


def test_server_does_not_leave_a_gap_behind() -> None:
    servers = [server("a", 0, 4, 9.0), server("b", 4, 8, 1.0), server("c", 4, 8, 1.0)]
    assert better_span(8, servers, PeerId("a")) is None


def test_spare_server_moves_where_blocks_are_served_worst() -> None:
    servers = [server("a", 0, 4, 5.0), server("b", 0, 4, 5.0), server("c", 4, 8, 5.0)]
    servers.append(server("d", 0, 4, 5.0))
    assert better_span(8, servers, PeerId("d")) == Span(4, 8)


def test_a_small_gain_is_not_worth_a_move() -> None:
    servers = [server("a", 0, 4, 10.0), server("b", 0, 4, 1.0), server("c", 4, 8, 10.0)]
    assert better_span(8, servers, PeerId("b")) is None
    assert better_span(8, servers, PeerId("b"), gain=0.0) is None  # then blocks 0 to 3 are worst


def test_gap_in_the_swarm_is_closed_by_a_server_that_is_not_needed_elsewhere() -> None:
    servers = [server("a", 0, 4), server("b", 0, 4), server("c", 8, 12)]
    settled = settle(12, servers)
    assert block_rates(12, settled).min() == 1.0


def test_settled_swarm_stays_and_is_no_worse() -> None:
    rng = Random(7)
    servers: list[Server] = []
    for index in range(20):
        newcomer = join(24, servers, PeerId(f"{index:02}"), rng.randint(2, 9), rng.uniform(1, 9))
        servers.append(newcomer)
    settled = settle(24, servers)
    assert block_rates(24, settled).min() >= block_rates(24, servers).min()
    assert settle(24, settled) == settled
