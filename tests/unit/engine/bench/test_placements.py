from __future__ import annotations

import sys

import numpy as np
import pytest

from engine.bench.placements import milp, simple
from engine.bench.placements.instances import random_instance
from engine.bench.placements.rivals import RIVALS, rival_plan
from engine.core.errors import ConfigError
from engine.core.profiles import Objective
from engine.planner import order
from engine.planner.costs import Work
from engine.planner.fleet import Fleet
from engine.planner.flow import Form
from engine.planner.partition import Share, value_ns
from engine.planner.search import plan
from engine.planner.tables import NEVER, ROLES, Question, question

SAME = 1e-6
"""The solver computes in floating point."""


def hand_made(block_ns: list[int], most: list[int], num_blocks: int, hop_ns: int = 10) -> Question:
    """Machines that take so long per block and hold so many; all lines are alike."""
    num = len(block_ns)
    lengths = np.arange(num_blocks + 1)
    stage_ns = np.full((num, ROLES, num_blocks + 1), NEVER, dtype=np.int64)
    for place in range(num):
        fits = (lengths >= 1) & (lengths <= most[place])
        stage_ns[place][:, fits] = block_ns[place] * lengths[fits]
    hops = np.full((num, num), hop_ns, dtype=np.int64)
    return Question(Form.SUM, 1, stage_ns, stage_ns.copy(), hops, hops, hops, 0 * hops)


def random_question(machines: int, blocks: int, seed: int, form: Form) -> Question:
    instance = random_instance(machines, blocks, seed)
    work = Work.of(Objective(codec_ratio=0.7), 32, 1 if form is Form.SUM else 4)
    fleet = Fleet.of(instance.profiles, instance.network)
    return question(fleet, instance.model, work, form=form)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize(("machines", "blocks"), [(1, 4), (3, 7), (4, 6)])
def test_mixed_integer_program_trying_everything_and_our_planner_agree(machines, blocks, form):
    for seed in range(3):
        asked = random_question(machines, blocks, seed, form)
        tried, solved = simple.brute_force(asked), milp.solve(asked)
        ours = order.solve(asked)
        assert tried is not None
        assert solved.partition is not None
        assert ours is not None
        assert solved.is_proven
        assert value_ns(asked, solved.partition) == pytest.approx(value_ns(asked, tried), rel=SAME)
        assert value_ns(asked, ours) == value_ns(asked, tried)


def test_mixed_integer_program_keeps_the_order_it_is_given():
    asked = random_question(5, 20, 1, Form.SUM)
    solved = milp.solve(asked, (4, 3, 2, 1, 0))
    assert solved.partition is not None
    places = [share.place for share in solved.partition.shares]
    assert places == sorted(places, reverse=True)


def test_mixed_integer_program_proves_that_nothing_fits():
    solved = milp.solve(hand_made([1, 1], [3, 2], 6))
    assert solved.partition is None
    assert solved.is_proven


def test_mixed_integer_program_refuses_times_that_are_not_linear():
    asked = hand_made([5, 5], [4, 4], 4)
    asked.stage_ns[0, :, 3] += 1
    with pytest.raises(ValueError, match="linear"):
        milp.solve(asked)


def test_without_scipy_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ConfigError, match="pip install scipy"):
        milp.solve(hand_made([1, 1], [3, 3], 6))


def test_even_split_gives_a_full_machines_rest_to_the_others():
    found = simple.even_split(hand_made([1, 1, 1], [2, 9, 9], 10))
    assert found is not None
    assert found.shares == (Share(0, 2), Share(1, 4), Share(2, 4))


def test_even_split_knows_when_nothing_fits():
    assert simple.even_split(hand_made([1, 1], [3, 2], 6)) is None


def test_petals_fills_its_servers_in_the_order_in_which_they_join():
    found = simple.petals(hand_made([1, 9, 1], [4, 4, 4], 8))
    assert found is not None
    assert found.shares == (Share(0, 4), Share(2, 4)), "the third thickens the slow one's blocks"


def test_petals_client_uses_a_part_of_a_span():
    found = simple.petals(hand_made([5, 5], [6, 6], 8))
    assert found is not None
    assert sum(share.length for share in found.shares) == 8
    assert found.way_ns == 8 * 5 + 10 + 10  # a hop there and one back


def test_too_many_pipelines_are_not_tried():
    with pytest.raises(ValueError, match="too many"):
        simple.brute_force(hand_made([1] * 8, [20] * 8, 20))


def test_equal_seeds_give_equal_swarms():
    assert random_instance(4, 16, 3) == random_instance(4, 16, 3)
    assert random_instance(4, 16, 3) != random_instance(4, 16, 4)


@pytest.mark.parametrize("name", RIVALS)
def test_no_rival_plans_better_than_we_do(name):
    instance = random_instance(3, 8, 2)
    machines = (instance.profiles, instance.network, instance.model)
    objective = Objective(batch_size=32, num_microbatches=4)
    ours, theirs = plan(*machines, objective), rival_plan(name, *machines, objective)
    assert theirs is not None
    assert sum(len(stage.span) for stage in theirs.stages) == 8
    assert theirs.sustained_tokens_per_s <= ours.sustained_tokens_per_s * (1 + SAME)
    if name in ("milp", "brute"):
        best = pytest.approx(ours.sustained_tokens_per_s, rel=SAME)
        assert theirs.sustained_tokens_per_s == best


def test_rival_that_cannot_plan_says_why():
    instance = random_instance(6, 80, 0)
    machines = (instance.profiles, instance.network, instance.model)
    with pytest.raises(ConfigError, match="too many to try"):
        rival_plan("brute", *machines, Objective(batch_size=1))
