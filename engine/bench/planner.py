"""`shoal bench planner`: how good our plans are, and how soon they are there, beside others' ways.

All get the same random swarms and the same tables of times, and all results are measured by the same
formula, in whole nanoseconds.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from engine.bench.placements import milp, simple
from engine.bench.placements.instances import Instance, random_instance
from engine.core.profiles import Objective
from engine.planner import order
from engine.planner.costs import Work
from engine.planner.fleet import Fleet
from engine.planner.flow import Form
from engine.planner.partition import Partition, solve_in_order, value_ns
from engine.planner.search import plan
from engine.planner.tables import Question, question

FORMS: Final = (Form.SUM, Form.BOTTLENECK, Form.RING)
CODEC_RATIO: Final = 0.67
"""Of bfloat16 activations in Shoal's codec."""
BATCH_SIZE: Final = 32
NUM_MICROBATCHES: Final = 4
_SOLVERS: Final = ("shoal", "milp", "petals", "even")
EQUAL: Final = 1e-6
"""Values that differ by less are the same: the solver computes in floating point."""
MAX_MACHINES: Final = 1000
MAX_BLOCKS: Final = 1000
MAX_MILP_MACHINES: Final = 8
"""With more, the mixed-integer program takes minutes to hours, and is left out."""


@dataclass(frozen=True, slots=True)
class PlannerBench:
    """What to compare."""

    machines: tuple[int, ...] = (3, 4, 5, 6, 7, 8)
    num_blocks: int = 80
    instances: int = 5
    time_limit_s: float = 60.0
    """For each run of the mixed-integer solver."""


class SolverRow(BaseModel):
    """One way to place, on all swarms of one size, for one thing to minimise."""

    machines: int
    blocks: int
    form: str
    """What is minimised: the way round, the busiest part, or a ring's step."""
    solver: str
    order: str
    """`fixed`: machines are to stay in the order given; `free`: any is allowed."""
    instances: int
    found: int
    """Swarms for which there was a pipeline."""
    out_of_time: int
    solve_ms_median: float
    ratio_median: float | None
    """Step time over the best that anyone has found who was allowed to."""
    ratio_max: float | None
    optimal: int
    """How often it equals the optimum that the solver has proven …"""
    optimal_of: int
    """… where it has."""


class SearchRow(BaseModel):
    """The whole search over batch, micro-batches, cache tiers, codec and order."""

    machines: int
    blocks: int
    instances: int
    plan_s_median: float
    plan_s_max: float


class PlannerReport(BaseModel):
    """Everything."""

    rows: list[SolverRow]
    searches: list[SearchRow]


@dataclass(frozen=True, slots=True)
class _Outcome:
    solve_s: float
    value_ns: int | None
    is_proven: bool | None
    """None: not a solver that proves anything."""


def measure(bench: PlannerBench, say: Callable[[str], None]) -> PlannerReport:
    """Solve everything.

    Args:
        bench: What to compare.
        say: Gets a line before each size of swarm.

    Raises:
        ConfigError: scipy is not installed.
    """
    rows: list[SolverRow] = []
    searches = []
    for machines in bench.machines:
        say(f"{bench.instances} swarms of {machines} machines, {bench.num_blocks} blocks")
        instances = [
            random_instance(machines, bench.num_blocks, seed) for seed in range(bench.instances)
        ]
        for form in FORMS:
            questions = [_question(instance, form) for instance in instances]
            rows += _rows(machines, form, questions, bench)
        searches.append(_search(machines, instances))
    return PlannerReport(rows=rows, searches=searches)


def lines(report: PlannerReport) -> list[str]:
    """The report for people."""
    text = [
        "Step time over the best that anyone has found, medians and the worst:",
        f"{'N':>4} {'L':>3}  {'minimised':10}  {'solver':7}  {'order':5}  {'ms':>9}  "
        f"{'ratio':>7}  {'worst':>7}  optimal",
    ]
    for row in report.rows:
        ratios = [row.ratio_median, row.ratio_max]
        cells = "  ".join("      –" if ratio is None else f"{ratio:7.3f}" for ratio in ratios)
        proven = f"{row.optimal} of {row.optimal_of}" if row.optimal_of else "–"
        late = f", {row.out_of_time} out of time" if row.out_of_time else ""
        none = row.instances - row.found
        missing = f", {none} without a pipeline" if none else ""
        text.append(
            f"{row.machines:4} {row.blocks:3}  {row.form:10}  {row.solver:7}  {row.order:5}  "
            f"{row.solve_ms_median:9.2f}  {cells}  {proven}{late}{missing}"
        )
    text.append("The whole search over batch, micro-batches, codec, cache tiers and order:")
    text += [
        f"{row.machines:4} {row.blocks:3}  median {1e3 * row.plan_s_median:.0f} ms, "
        f"longest {1e3 * row.plan_s_max:.0f} ms"
        for row in report.searches
    ]
    ours = [row for row in report.rows if row.solver == "shoal"]
    if provable := sum(row.optimal_of for row in ours):
        equal = sum(row.optimal for row in ours)
        text.append(f"Shoal's plan equals the proven optimum in {equal} of {provable} cases.")
    return text


def _question(instance: Instance, form: Form) -> Question:
    number = 1 if form is Form.SUM else NUM_MICROBATCHES
    work = Work.of(Objective(codec_ratio=CODEC_RATIO), BATCH_SIZE, number)
    return question(Fleet.of(instance.profiles, instance.network), instance.model, work, form=form)


def _rows(
    machines: int, form: Form, questions: Sequence[Question], bench: PlannerBench
) -> list[SolverRow]:
    fixed = tuple(range(machines))
    outcomes: dict[tuple[str, str], list[_Outcome]] = defaultdict(list)
    for asked in questions:
        outcomes["shoal", "free"].append(_timed(asked, order.solve))
        outcomes["petals", "free"].append(_timed(asked, simple.petals))
        outcomes["even", "free"].append(_timed(asked, simple.even_split))
        if machines <= MAX_MILP_MACHINES:
            outcomes["milp", "free"].append(_timed_milp(asked, None, bench.time_limit_s))
            outcomes["shoal", "fixed"].append(_timed(asked, lambda q: solve_in_order(q, fixed)))
            outcomes["milp", "fixed"].append(_timed_milp(asked, fixed, bench.time_limit_s))
    return [
        _row(machines, bench.num_blocks, form, solver, order_name, outcomes)
        for solver, order_name in sorted(outcomes, key=lambda key: (key[1], _SOLVERS.index(key[0])))
    ]


def _row(
    machines: int,
    blocks: int,
    form: Form,
    solver: str,
    order_name: str,
    outcomes: dict[tuple[str, str], list[_Outcome]],
) -> SolverRow:
    own = outcomes[solver, order_name]
    ratios, optimal, optimal_of = [], 0, 0
    for index, outcome in enumerate(own):
        rivals = [all_of[index] for (_, name), all_of in outcomes.items() if name == order_name]
        values = [rival.value_ns for rival in rivals if rival.value_ns is not None]
        if outcome.value_ns is not None:
            ratios.append(outcome.value_ns / min(values))
        proven = [rival for rival in rivals if rival.is_proven]
        if proven:
            optimal_of += 1
            optimal += _are_equal(outcome.value_ns, proven[0].value_ns)
    return SolverRow(
        machines=machines,
        blocks=blocks,
        form=form,
        solver=solver,
        order=order_name,
        instances=len(own),
        found=len(ratios),
        out_of_time=sum(outcome.is_proven is False for outcome in own),
        solve_ms_median=1e3 * statistics.median(outcome.solve_s for outcome in own),
        ratio_median=statistics.median(ratios) if ratios else None,
        ratio_max=max(ratios, default=None),
        optimal=optimal,
        optimal_of=optimal_of,
    )


def _are_equal(one_ns: int | None, other_ns: int | None) -> bool:
    if one_ns is None or other_ns is None:
        return one_ns is other_ns
    return abs(one_ns - other_ns) <= EQUAL * other_ns


def _timed(asked: Question, solve: Callable[[Question], Partition | None]) -> _Outcome:
    started_s = time.perf_counter()
    found = solve(asked)
    solve_s = time.perf_counter() - started_s
    return _Outcome(solve_s, None if found is None else value_ns(asked, found), None)


def _timed_milp(asked: Question, places: Sequence[int] | None, time_limit_s: float) -> _Outcome:
    started_s = time.perf_counter()
    found = milp.solve(asked, places, time_limit_s=time_limit_s)
    solve_s = time.perf_counter() - started_s
    value = None if found.partition is None else value_ns(asked, found.partition)
    return _Outcome(solve_s, value, found.is_proven)


def _search(machines: int, instances: Sequence[Instance]) -> SearchRow:
    times_s = []
    for instance in instances:
        started_s = time.perf_counter()
        plan(
            instance.profiles,
            instance.network,
            instance.model,
            Objective(codec_ratio=CODEC_RATIO),
        )
        times_s.append(time.perf_counter() - started_s)
    return SearchRow(
        machines=machines,
        blocks=instances[0].model.num_blocks,
        instances=len(instances),
        plan_s_median=statistics.median(times_s),
        plan_s_max=max(times_s),
    )
