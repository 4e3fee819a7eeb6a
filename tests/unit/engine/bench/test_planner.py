from __future__ import annotations

import json

import pytest

from engine.bench import planner
from engine.bench.main import main
from engine.core.errors import ConfigError


@pytest.fixture(scope="module")
def report() -> planner.PlannerReport:
    bench = planner.PlannerBench(machines=(3,), num_blocks=12, instances=2)
    return planner.measure(bench, lambda _: None)


def test_our_plan_equals_the_proven_optimum(report):
    ours = [row for row in report.rows if row.solver == "shoal"]
    assert {row.form for row in ours} == {"sum", "bottleneck", "ring"}
    assert all(row.optimal == row.optimal_of == row.instances == 2 for row in ours)


def test_nobody_is_better_than_the_best(report):
    ratios = [row.ratio_median for row in report.rows if row.ratio_median is not None]
    assert min(ratios) == 1
    assert {row.solver for row in report.rows} == {"shoal", "milp", "petals", "even"}


def test_people_read_how_often_the_optimum_was_found(report):
    text = planner.lines(report)
    assert text[-1] == "Shoal's plan equals the proven optimum in 12 of 12 cases."


def test_command_prints_one_object(capsys):
    assert main(["planner", "--machines", "2", "--blocks", "6", "--instances", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["searches"][0]["machines"] == 2
    assert printed["rows"][0]["solver"] == "shoal"


def test_swarms_that_no_memory_holds_are_refused():
    with pytest.raises(ConfigError, match="ask for fewer"):
        main(["planner", "--machines", "3,100000"])
