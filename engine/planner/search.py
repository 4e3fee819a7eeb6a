"""The best plan: stages and their order, batch, micro-batches, cache tiers, codec and drafting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.core.plans import Plan, PlannedStage
from engine.core.profiles import (
    Calibration,
    Goal,
    ModelSize,
    NetworkMatrix,
    NodeProfile,
    Objective,
)
from engine.planner.account import Account, account, planned_stages
from engine.planner.bounds import step_bound_ns
from engine.planner.costs import Work
from engine.planner.explain import bottleneck, terms
from engine.planner.fleet import Fleet
from engine.planner.flow import UNCALIBRATED, Form
from engine.planner.goals import Rates, least_rate, rates, solve_frugally, taken
from engine.planner.improve import improved, promising
from engine.planner.infeasible import why_infeasible
from engine.planner.micro_batches import MAX_MICRO_BATCHES
from engine.planner.order import EXACT_MACHINES, solve
from engine.planner.partition import Partition, value_ns
from engine.planner.speculation import drafted
from engine.planner.tables import NEVER, Question, question

_ALL_MACHINES: Final = 40
"""Of more, those that good pipelines for some typical steps do not use are left out early."""
_PATIENCE: Final = 4
"""With many machines, so many choices of B and M in a row may fail to be better than the best."""
_STARTS: Final = 6
"""With many machines, orders are looked for from so many first ones in the end."""


@dataclass(frozen=True, slots=True)
class _Found:
    work: Work
    prune_threshold: float
    partition: Partition
    step_ns: int
    value: float
    """What is to be small: nanoseconds per token, or these times watts or euros per hour."""


def plan(
    profiles: Sequence[NodeProfile],
    network: NetworkMatrix,
    model: ModelSize,
    objective: Objective,
    calibration: Calibration = UNCALIBRATED,
    *,
    form: Form = Form.RING,
) -> Plan:
    """Find the best pipeline of these machines.

    A pure function: equal values give equal plans, in whatever order the machines are listed.
    Exact in division and order up to `order.EXACT_MACHINES` machines, for every choice of B and M.

    Args:
        profiles: The machines.
        network: The lines between them.
        model: What to run.
        objective: What to be best at, and what for.
        calibration: What a fit to measurements adds.
        form: Of the pipeline; the papers' is there for comparison.

    Raises:
        PlanInfeasible: No pipeline fits; says what binds and what would help.
        ValueError: Machines and network do not belong together.
    """
    everyone = Fleet.of(profiles, network)
    if not profiles:
        raise why_infeasible(everyone, model, objective)
    search = _Search(everyone, model, objective, calibration, form)
    search = search.among_promising()
    found = search.best((Work.of(objective, *sizes), 0.0) for sizes in _sizes(objective))
    if found is None:
        raise why_infeasible(everyone, model, objective)
    chosen, done = search.accounted(search.polished(found))
    if objective.drafting is not None:
        drafted_found, drafted_done = search.accounted(search.drafting(chosen))
        # Nobody may wait longer for a token because of drafting, whatever else it is good for.
        if drafted_done.token_s <= done.token_s:
            chosen, done = drafted_found, drafted_done
    return _plan(done, chosen.prune_threshold, everyone, model, objective, calibration)


def predict(
    profiles: Sequence[NodeProfile],
    network: NetworkMatrix,
    model: ModelSize,
    stages: Sequence[PlannedStage],
    objective: Objective,
    calibration: Calibration = UNCALIBRATED,
    *,
    form: Form = Form.RING,
) -> Plan:
    """What a given pipeline would do, whether it is the best or fits or not.

    Args:
        profiles: The machines.
        network: The lines between them.
        model: What to run.
        stages: All its blocks, in order, with their α.
        objective: B and, if not 1, M; what the answers are like.
        calibration: What a fit to measurements adds.
        form: Of the pipeline.
    """
    fleet = Fleet.of(profiles, network)
    work = Work.of(objective, max(1, objective.batch_size), max(1, objective.num_microbatches))
    done = account(fleet, model, stages, work, objective, calibration, form=form)
    return _plan(done, 0.0, fleet, model, objective, calibration)


@dataclass(frozen=True, slots=True)
class _Search:
    fleet: Fleet
    model: ModelSize
    objective: Objective
    calibration: Calibration
    form: Form

    def among_promising(self) -> _Search:
        """The same with fewer machines, if there are very many."""
        if len(self.fleet) <= _ALL_MACHINES:
            return self
        sizes = _sizes(self.objective)
        typical = {sizes[0], sizes[len(sizes) // 2], sizes[-1]}
        questions = [self._question(Work.of(self.objective, *size)) for size in sorted(typical)]
        places = sorted({place for asked in questions for place in promising(asked)})
        return replace(self, fleet=self.fleet.of_places(places)) if places else self

    def best(
        self, works: Iterable[tuple[Work, float]], found: _Found | None = None
    ) -> _Found | None:
        """Best first: whatever cannot beat what is known by its bound is not looked at.

        Args:
            works: What a step may ask for, each with its τ.
            found: What is known.
        """
        weights = rates(self.fleet, self.objective.goal)
        bounded = []
        for index, (work, prune_threshold) in enumerate(works):
            asked = self._question(work)
            bound_ns = step_bound_ns(asked)
            if bound_ns < NEVER:
                least = 1.0 if weights is None else least_rate(asked, weights)
                bound = least * bound_ns / _tokens(work)
                bounded.append((bound, index, work, prune_threshold, asked))
        patience = len(bounded) if len(self.fleet) <= EXACT_MACHINES else _PATIENCE
        for bound, _, work, prune_threshold, asked in sorted(bounded, key=lambda item: item[:2]):
            if found is not None and (bound >= found.value or not patience):
                break
            patience -= 1
            below = math.inf if found is None else found.value * _tokens(work)
            partition = _solved(asked, weights, below)
            if partition is not None:
                value = _value(asked, partition, weights) / _tokens(work)
                if found is None or value < found.value:
                    step_ns = value_ns(asked, partition)
                    found = _Found(work, prune_threshold, partition, step_ns, value)
                    patience = max(patience, _PATIENCE)
        return found

    def polished(self, found: _Found) -> _Found:
        """Look longer for a good order, now that B and M are known."""
        if len(self.fleet) <= EXACT_MACHINES or self.objective.goal in (Goal.ENERGY, Goal.COST):
            return found
        asked = self._question(found.work)
        partition = improved(asked, found.step_ns, starts=_STARTS)
        if partition is None:
            return found
        step_ns = value_ns(asked, partition)
        return replace(
            found, partition=partition, step_ns=step_ns, value=step_ns / _tokens(found.work)
        )

    def drafting(self, plain: _Found) -> _Found:
        """The best with drafting, or plain decoding."""
        assert self.objective.drafting is not None
        works = [
            option
            for sizes in _sizes(replace(self.objective, batch_size=plain.work.batch_size))
            for option in drafted(Work.of(self.objective, *sizes), self.objective.drafting)
        ]
        found = self.best(works, plain)
        assert found is not None
        return found

    def accounted(self, found: _Found) -> tuple[_Found, Account]:
        """What it takes, part by part."""
        stages = planned_stages(self.fleet, self.model, found.partition, found.work)
        done = account(
            self.fleet,
            self.model,
            stages,
            found.work,
            self.objective,
            self.calibration,
            form=self.form,
        )
        return found, done

    def _question(self, work: Work) -> Question:
        return question(
            self.fleet,
            self.model,
            work,
            self.calibration,
            form=self.form,
            is_answer_alone=self.objective.goal is Goal.LATENCY,
        )


def _solved(asked: Question, weights: Rates | None, below: float) -> Partition | None:
    if weights is not None:
        return solve_frugally(asked, weights, below)
    return solve(asked, min(math.ceil(min(below, NEVER)), NEVER))


def _value(asked: Question, partition: Partition, weights: Rates | None) -> float:
    if weights is not None:
        return taken(asked, partition, weights)
    return float(value_ns(asked, partition))


def _tokens(work: Work) -> float:
    return work.batch_size * work.committed_tokens


def _plan(
    done: Account,
    prune_threshold: float,
    fleet: Fleet,
    model: ModelSize,
    objective: Objective,
    calibration: Calibration,
) -> Plan:
    used = {stage.peer for stage in done.stages}
    return Plan(
        done.stages,
        done.work.batch_size,
        done.work.num_microbatches,
        any(done.is_encoded),
        done.work.tree_size,
        prune_threshold,
        done.step_s,
        done.tokens_per_s,
        done.prefill_s,
        bottleneck(done),
        tuple(peer for peer in fleet.peers if peer not in used),
        terms(done, fleet, model, objective, calibration),
        done.sustained_tokens_per_s,
    )


def _sizes(objective: Objective) -> list[tuple[int, int]]:
    """B and M to choose from."""
    if objective.batch_size:
        batch_sizes = [objective.batch_size]
    elif objective.goal is Goal.LATENCY:
        batch_sizes = [1]
    else:
        powers = [1 << power for power in range(objective.max_batch_size.bit_length())]
        batch_sizes = sorted({*powers, objective.max_batch_size})
    out = []
    for batch_size in batch_sizes:
        if objective.num_microbatches:
            numbers = [min(objective.num_microbatches, batch_size)]
        elif objective.goal is Goal.LATENCY:
            numbers = [1]
        else:
            most = min(batch_size, MAX_MICRO_BATCHES)
            numbers = [1 << power for power in range(most.bit_length())]
        out += [(batch_size, number) for number in numbers]
    return out
