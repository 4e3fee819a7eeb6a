from __future__ import annotations

from itertools import pairwise

import pytest

from engine.core.errors import ConfigError
from engine.simulator import scenarios
from engine.simulator.scenario import Scenario

HOUR_S = 3600.0


def present(scenario: Scenario, at_s: float) -> int:
    return sum(visit.from_s <= at_s < visit.until_s for visit in scenario.visits)


@pytest.mark.parametrize("name", scenarios.NAMES)
def test_no_machine_is_there_twice_at_once(name: str) -> None:
    scenario = scenarios.build(name, 1)
    visits = sorted(scenario.visits, key=lambda visit: (visit.machine, visit.from_s))
    for one, other in pairwise(visits):
        assert one.from_s < one.until_s
        assert one.machine != other.machine or one.until_s <= other.from_s


def test_206_servers_are_about_a_hundred_by_day_and_twenty_at_night() -> None:
    scenario = scenarios.build("petals-206", 0)
    assert len(scenario.machines) == 206
    assert 15 <= present(scenario, 0.0) <= 25
    assert 100 <= present(scenario, 12 * HOUR_S) <= 110
    assert 180 <= len(scenario.visits) <= 240


def test_equal_seeds_draw_equal_swarms_and_others_do_not() -> None:
    assert scenarios.build("petals-206", 3) == scenarios.build("petals-206", 3)
    assert scenarios.build("petals-206", 3) != scenarios.build("petals-206", 4)


def test_scenario_that_there_is_not_is_an_error_that_names_the_others() -> None:
    with pytest.raises(ConfigError, match=r"no scenario 'petals'.*petals-206, bloombee-e1"):
        scenarios.build("petals", 0)
