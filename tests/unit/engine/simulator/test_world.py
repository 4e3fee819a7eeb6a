from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from engine.core.ids import PeerId
from engine.simulator import policies, scenarios
from engine.simulator.record import Record
from engine.simulator.scenario import DAY_S, Machine, Scenario, Visit
from engine.simulator.world import World

HOUR_S = 3600.0
RELOAD_S = 120.0


def run(
    scenario: Scenario, policy: str = "shoal", *, reload_s: float = 0.0, seed: int = 0
) -> Record:
    return World(scenario, policies.named(policy, scenario.size), seed, reload_s).run()


def few(*visits: tuple[int, float, float], hours: float = 2.0) -> Scenario:
    """Three equal machines, each for a half of the model."""
    machines = tuple(Machine(PeerId(f"node-{index}"), 5, 0.01) for index in range(3))
    return Scenario(
        "few", "", 10, machines, tuple(Visit(*visit) for visit in visits), hours * HOUR_S
    )


def test_two_halves_that_stay_are_all_that_is_possible() -> None:
    record = run(few((0, -1.0, inf), (1, -1.0, inf)))
    assert record.mean_bound_share == pytest.approx(1)
    assert (record.moves, record.seconds_at_zero) == (0, 0.0)
    assert record.node_days == pytest.approx(4 / 24)
    assert record.samples[-1].tokens_per_s == pytest.approx(20)


@pytest.mark.parametrize("lost", [0, 1])
def test_spare_takes_the_place_of_who_has_left(lost: int) -> None:
    visits = [(0, -1.0, inf), (1, -1.0, inf), (2, -1.0, inf)]
    visits[lost] = (lost, -1.0, HOUR_S)
    record = run(few(*visits), reload_s=RELOAD_S)
    assert record.samples[-1].tokens_per_s == pytest.approx(20)
    assert record.longest_zero_s <= RELOAD_S + 60
    assert record.moves <= 1


def test_swarm_without_enough_machines_is_not_counted_as_out_of_service() -> None:
    record = run(few((0, -1.0, inf), (1, -1.0, HOUR_S)))
    assert record.samples[-1].tokens_per_s == 0
    assert record.samples[-1].bound_tokens_per_s == pytest.approx(10), "two halves of one machine"


def test_equal_seeds_give_equal_runs() -> None:
    scenario = replace(scenarios.build("petals-206", 1), duration_s=HOUR_S)
    one, other = run(scenario, seed=5), run(scenario, seed=5)
    assert one == other
    assert one != run(scenario, seed=6)
    assert one.moves > 0


def test_our_planner_serves_more_of_what_is_possible_than_petals_and_than_nobody() -> None:
    scenario = replace(scenarios.build("petals-206", 2), duration_s=1.5 * HOUR_S)
    shares = {name: run(scenario, name).mean_bound_share for name in policies.NAMES}
    assert shares["shoal"] > shares["petals"] + 0.03
    assert shares["shoal"] > shares["join"] + 0.03


def test_lost_region_leaves_no_gap_longer_than_one_reload() -> None:
    scenario = replace(scenarios.build("region-lost", 0), duration_s=1.5 * HOUR_S)
    record = run(scenario, reload_s=RELOAD_S)
    assert record.longest_zero_s <= RELOAD_S
    assert record.mean_bound_share > 0.85


def test_who_says_it_is_fast_and_is_not_is_found_out_by_those_who_use_it() -> None:
    record = run(replace(scenarios.build("liar", 0), duration_s=1.5 * HOUR_S))
    assert record.samples[0].tokens_per_s < 0.9 * record.samples[0].bound_tokens_per_s
    assert record.samples[-1].tokens_per_s > 0.95 * record.samples[-1].bound_tokens_per_s


def test_noise_of_measurements_moves_nobody_for_a_day() -> None:
    scenario = scenarios.build("jitter", 0)
    assert scenario.duration_s == DAY_S
    whole = run(scenario)
    first_hour = run(replace(scenario, duration_s=HOUR_S))
    assert whole.moves == first_hour.moves
