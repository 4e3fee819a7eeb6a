"""Placement by mixed-integer program, as Helix does it, solved by HiGHS: a second way to the optimum.

Machines are nodes of a graph, the pipeline is a path through it, and how many blocks a machine holds
is an integer. Times must grow linearly with the blocks held, which they do while no cache lies in
RAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.bench.solvers import output_to_stderr, scipy_modules
from engine.planner.flow import Form
from engine.planner.partition import Partition, Share, measured
from engine.planner.tables import FIRST, LAST, MIDDLE, NEVER, Question, Times

_NS_PER_UNIT: Final = 1e6
"""The solver's tolerances suit numbers between a thousandth and a thousand: milliseconds."""
_GAP: Final = 1e-9
"""Share of the objective by which the solver may fall short and still call it the optimum."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What the solver has found."""

    partition: Partition | None
    is_proven: bool
    """Nothing better exists; or, without a partition, none does. False: time was up."""


@dataclass
class _Program:
    """Rows and columns, as they are added."""

    costs: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    is_whole: list[bool] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def variable(self, cost: float, upper: float, *, is_whole: bool = False) -> int:
        """Add one, from 0 to `upper`. Returns its column."""
        self.costs.append(cost)
        self.upper.append(upper)
        self.is_whole.append(is_whole)
        return len(self.costs) - 1

    def at_least(self, terms: dict[int, float], bound: float) -> None:
        """Σ terms ≥ bound."""
        self.rows.append((terms, bound, np.inf))

    def equal(self, terms: dict[int, float], bound: float) -> None:
        """Σ terms = bound."""
        self.rows.append((terms, bound, bound))

    def solve(self, time_limit_s: float) -> tuple[NDArray[np.float64] | None, bool]:
        """Values of the variables, if there are any, and whether they are proven best."""
        optimize, sparse = scipy_modules()
        places = [(row, column) for row, (terms, _, _) in enumerate(self.rows) for column in terms]
        values = [value for terms, _, _ in self.rows for value in terms.values()]
        matrix = sparse.csr_array(
            (values, tuple(zip(*places, strict=True))), shape=(len(self.rows), len(self.costs))
        )
        lows, highs = [row[1] for row in self.rows], [row[2] for row in self.rows]
        with output_to_stderr():
            result = optimize.milp(
                self.costs,
                integrality=[int(whole) for whole in self.is_whole],
                bounds=optimize.Bounds(0, self.upper),
                constraints=optimize.LinearConstraint(matrix, lows, highs),
                options={"mip_rel_gap": _GAP, "time_limit": time_limit_s},
            )
        return result.x, result.status in (0, 2)  # solved, or shown to be infeasible


@dataclass(frozen=True, slots=True)
class _Linear:
    """A machine's times: slope · blocks + base by role, up to a number of blocks by role."""

    slope: float
    bases: tuple[float, ...]
    most: tuple[int, ...]

    @classmethod
    def of(cls, table_ns: Times) -> _Linear:
        """From a machine's rows of a table, [ROLES, L + 1].

        Raises:
            ValueError: They are not linear.
        """
        slopes, bases, most = set(), [], []
        for row in table_ns:
            fits = np.flatnonzero(row < NEVER)
            most.append(int(fits[-1]) if fits.size else 0)
            steps = set(np.diff(row[1 : most[-1] + 1]).tolist())
            if fits.size != most[-1] or len(steps) > 1:
                raise ValueError("times do not grow linearly with the blocks held")
            slopes |= steps
            bases.append(int(row[1]) if fits.size else 0)
        if len(slopes) > 1:
            raise ValueError("times grow differently at the ends of the pipeline")
        slope = slopes.pop() if slopes else 0
        bases_ms = tuple((base - slope) / _NS_PER_UNIT if base else 0.0 for base in bases)
        more_ms = bases_ms[FIRST | LAST] - bases_ms[FIRST] - bases_ms[LAST] + bases_ms[MIDDLE]
        if most[FIRST | LAST] and abs(more_ms) > 1e-9:
            raise ValueError("both ends of the pipeline take another time than each of them")
        return cls(slope / _NS_PER_UNIT, bases_ms, tuple(most))


def solve(
    question: Question, order: Sequence[int] | None = None, *, time_limit_s: float = 60.0
) -> Solution:
    """The best pipeline.

    Args:
        question: Tables of machines that keep no cache in RAM.
        order: Places in the fleet, in the order in which they may follow one another; None: any.
        time_limit_s: The best found until then will do.

    Raises:
        ConfigError: scipy is not installed.
        ValueError: A machine's times do not grow linearly with its blocks.
    """
    num = len(question.stage_ns)
    rank = {place: index for index, place in enumerate(order if order is not None else range(num))}
    hops = [
        (one, other)
        for one in rank
        for other in rank
        if one != other
        and (order is None or rank[one] < rank[other])
        and question.link_ns[one, other] < NEVER
    ]
    is_way, is_load, rest = _weights(question)
    program = _Program()
    load = program.variable(is_load, np.inf)
    way = program.variable(is_way, np.inf)
    if rest is not None:  # a ring: the larger of the two
        step = program.variable(1.0, np.inf)
        program.at_least({step: 1.0, way: -1.0}, rest)
        program.at_least({step: 1.0, load: -1.0}, 0.0)
    way_terms: dict[int, float] = {}
    blocks, first, last = {}, {}, {}
    for place in rank:
        blocks[place] = program.variable(0.0, question.num_blocks, is_whole=True)
        first[place] = program.variable(0.0, 1, is_whole=True)
        last[place] = program.variable(0.0, 1, is_whole=True)
    link = {hop: program.variable(0.0, 1, is_whole=True) for hop in hops}
    program.equal(dict.fromkeys(first.values(), 1.0), 1)
    program.equal(dict.fromkeys(last.values(), 1.0), 1)
    program.equal(dict.fromkeys(blocks.values(), 1.0), question.num_blocks)
    for place in rank:
        times, loads = _Linear.of(question.stage_ns[place]), _Linear.of(question.load_ns[place])
        enters = [first[place], *(column for hop, column in link.items() if hop[1] == place)]
        leaves = [last[place], *(column for hop, column in link.items() if hop[0] == place)]
        program.equal(dict.fromkeys(enters, 1.0) | dict.fromkeys(leaves, -1.0), 0)
        _bound_blocks(program, times, blocks[place], enters, first[place], last[place])
        for column, weight in _pass(times, blocks[place], enters, first[place], last[place]):
            way_terms[column] = way_terms.get(column, 0.0) + weight
        busy: dict[int, float] = {load: 1.0}
        for column, weight in _pass(loads, blocks[place], enters, first[place], last[place]):
            busy[column] = busy.get(column, 0.0) - weight
        program.at_least(busy, 0.0)
        if times.most[FIRST | LAST] < question.num_blocks:
            program.at_least({first[place]: -1.0, last[place]: -1.0}, -1.0)
    for (one, other), column in link.items():
        way_terms[column] += int(question.link_ns[one, other]) / _NS_PER_UNIT
        busy_ms = int(question.link_load_ns[one, other]) / _NS_PER_UNIT
        program.at_least({load: 1.0, column: -busy_ms}, 0.0)
    _add_way_back(program, question, first, last, way_terms, load)
    program.at_least({way: 1.0} | {column: -ms for column, ms in way_terms.items()}, 0.0)
    if order is None:
        _forbid_circles(program, question.num_blocks, blocks, link)
    values, is_proven = program.solve(time_limit_s)
    if values is None:
        return Solution(None, is_proven)
    return Solution(measured(question, _path(values, blocks, first, link)), is_proven)


def _weights(question: Question) -> tuple[float, float, float | None]:
    """What way and load count for, and for a ring what is added to the way before they compare."""
    match question.form:
        case Form.SUM:
            return 1.0, 0.0, None
        case Form.BOTTLENECK:
            return 0.0, 1.0, None
        case Form.CHAIN:
            return 1.0, 1.0 - 1.0 / question.num_microbatches, None
        case Form.RING:
            return 0.0, 0.0, question.fixed_way_ns / _NS_PER_UNIT


def _bound_blocks(
    program: _Program, times: _Linear, blocks: int, enters: list[int], first: int, last: int
) -> None:
    """At least one block where the path goes, none elsewhere, and no more than fit."""
    program.at_least({blocks: 1.0} | dict.fromkeys(enters, -1.0), 0.0)
    most = times.most
    room = dict.fromkeys(enters, float(most[MIDDLE])) | {first: float(most[FIRST])}
    room[last] = room.get(last, 0.0) + most[LAST] - most[MIDDLE]
    program.at_least({blocks: -1.0} | room, 0.0)


def _pass(
    times: _Linear, blocks: int, enters: list[int], first: int, last: int
) -> list[tuple[int, float]]:
    """A stage's time as terms; 0 where the path does not go."""
    base = times.bases
    terms = [(blocks, times.slope), (last, base[LAST] - base[MIDDLE])]
    return [
        *terms,
        *((column, base[FIRST] if column == first else base[MIDDLE]) for column in enters),
    ]


def _add_way_back(
    program: _Program,
    question: Question,
    first: dict[int, int],
    last: dict[int, int],
    way_terms: dict[int, float],
    load: int,
) -> None:
    """The ids' way from the last stage to the first, a product of two choices."""
    for end, is_last in last.items():
        for begin, is_first in first.items():
            if end == begin:
                continue
            back_ns = int(question.back_ns[end, begin])
            if back_ns >= NEVER:
                program.at_least({is_last: -1.0, is_first: -1.0}, -1.0)
                continue
            both = program.variable(0.0, 1.0)
            program.at_least({both: 1.0, is_last: -1.0, is_first: -1.0}, -1.0)
            way_terms[both] = back_ns / _NS_PER_UNIT
            busy_ms = int(question.back_load_ns[end, begin]) / _NS_PER_UNIT
            program.at_least({load: 1.0, both: -busy_ms}, 0.0)


def _forbid_circles(
    program: _Program, num_blocks: int, blocks: dict[int, int], link: dict[tuple[int, int], int]
) -> None:
    """A stage begins where the one before it ends, so that no path bites its own tail."""
    start = {place: program.variable(0.0, num_blocks) for place in blocks}
    for (one, other), column in link.items():
        terms = {start[other]: 1.0, start[one]: -1.0, blocks[one]: -1.0, column: -float(num_blocks)}
        program.at_least(terms, -float(num_blocks))


def _path(
    values: NDArray[np.float64],
    blocks: dict[int, int],
    first: dict[int, int],
    link: dict[tuple[int, int], int],
) -> tuple[Share, ...]:
    place: int | None = next(p for p, column in first.items() if values[column] > 0.5)
    shares = []
    while place is not None:
        shares.append(Share(place, round(values[blocks[place]])))
        following = (b for (a, b), column in link.items() if a == place and values[column] > 0.5)
        place = next(following, None)
    return tuple(shares)
