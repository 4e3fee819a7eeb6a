"""Generations while transfers fail and stages are killed: each must give the undisturbed ids."""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from engine.bench.bed import Bed, say
from engine.bench.children import Child, Children, OrderFailed
from engine.bench.measured import Measured
from engine.bench.report import Run, plain_run
from engine.bench.request import SwarmBench
from engine.bench.specs import AwaitPeers, Question
from engine.bench.steady import ask_local
from engine.bench.swarm_processes import READY_LIMIT_S, Member
from engine.core.plans import Span


@dataclass(frozen=True, slots=True)
class Kill:
    """A stage that shall die."""

    generation: int
    at_token: int
    """When so many tokens have come, of all sequences together."""
    stage: int
    """Its place in the pipeline, from 0."""


class Disturbance(BaseModel):
    """What went wrong on purpose, and what came of it."""

    generations: int
    equal: int
    """Those whose ids are the undisturbed ones."""
    failed: int
    """Those that ended with an error."""
    errors: list[str]
    """What these said, each once."""
    reference: str
    """Where the undisturbed ids come from."""
    kills: int
    pauses_s: list[float]
    """The longest one between two tokens after each kill, as the client saw it."""
    recoveries: int
    recovery_s_max: float | None
    """From noticing a loss to the next token; the median stands with the run."""
    resent_ids: int
    """Ids that the client sent to first stages again."""
    stages_replaced: int
    seconds: list[float]
    """Each generation's whole time."""


@dataclass(slots=True)
class _Tally:
    measured: list[Measured] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    kills: int = 0
    pauses_s: list[float] = field(default_factory=list)

    @property
    def recoveries_s(self) -> list[float]:
        """From noticing a loss to the next token."""
        return [seconds for measured in self.measured for seconds in measured.recoveries_s]


def draw_kills(bench: SwarmBench, generations: int) -> list[Kill]:
    """Which stage dies when, by the seed; in one generation no stage twice."""
    source = random.Random(bench.seed)  # noqa: S311 - nothing secret about it
    tokens = bench.batch_sizes[0] * bench.new_tokens
    kills: list[Kill] = []
    shares = [
        bench.kills * (number + 1) // generations - bench.kills * number // generations
        for number in range(generations)
    ]
    for generation, count in enumerate(shares):
        stages = source.sample(range(bench.stages), count)
        # Not before there is something to lose, nor when it is too late.
        moments = sorted(
            source.sample(range(tokens // 8, max(tokens // 8 + count, 7 * tokens // 8)), count)
        )
        kills += [Kill(generation, at, stage) for at, stage in zip(moments, stages, strict=True)]
    return kills


def count_generations(bench: SwarmBench) -> int:
    """How many generations are needed for what was asked for."""
    return max(bench.generations, -(-bench.kills // bench.stages), 1)


def spare_spans(bench: SwarmBench, spans: Sequence[Span]) -> list[Span]:
    """What the spares shall hold: one for each stage that will die, or as many as were asked for."""
    kills = draw_kills(bench, count_generations(bench))
    wanted = list(dict.fromkeys(kill.stage for kill in kills))
    if bench.spares is not None:
        wanted = list(itertools.islice(itertools.cycle(wanted or range(len(spans))), bench.spares))
    return [spans[stage] for stage in wanted]


async def measure_disturbed(
    bed: Bed, children: Children, local: Child | None
) -> tuple[list[Run], set[str], Disturbance]:
    """Generate the same again and again while things go wrong.

    Args:
        bed: The swarm; its client is not started yet.
        children: For the local reference.
        local: Gives the undisturbed ids; without it the first generation does, in which nobody is
            killed.

    Raises:
        BenchFailed: A program failed that nobody has killed.
    """
    await bed.swarm.start_client({})
    question = Question(prompts=bed.model.prompts, new_tokens=bed.bench.new_tokens, steady=False)
    tally, generations = _Tally(), count_generations(bed.bench)
    if local is not None:
        reference = await ask_local(children, local, question)
    else:
        reference = await bed.generate(question)
    kills = draw_kills(bed.bench, generations)
    for generation in range(generations):
        say(f"Generation {generation + 1} of {generations}")
        due = [kill for kill in kills if kill.generation == generation]
        await _generate(bed, question, due, tally)
    if not tally.measured:
        raise OrderFailed(f"Not one generation succeeded: {tally.errors[-1]}")
    run = plain_run("shoal", tally.measured, bed.shape(0)).model_copy(
        update={
            "kills": tally.kills,
            "recovery_s_median": statistics.median(tally.recoveries_s)
            if tally.recoveries_s
            else None,
        }
    )
    hashes = {reference.ids_sha256, *(measured.ids_sha256 for measured in tally.measured)}
    return [run], hashes, _summary(tally, reference, generations, local is not None)


def _summary(tally: _Tally, reference: Measured, generations: int, is_local: bool) -> Disturbance:
    return Disturbance(
        generations=generations,
        equal=sum(measured.ids_sha256 == reference.ids_sha256 for measured in tally.measured),
        failed=len(tally.errors),
        errors=list(dict.fromkeys(tally.errors)),
        reference="local" if is_local else "first generation",
        kills=tally.kills,
        pauses_s=tally.pauses_s,
        recoveries=len(tally.recoveries_s),
        recovery_s_max=max(tally.recoveries_s, default=None),
        resent_ids=sum(measured.resent_ids for measured in tally.measured),
        stages_replaced=sum(measured.stages_replaced for measured in tally.measured),
        seconds=[
            max(times[-1] for times in measured.arrivals_s) - measured.started_s
            for measured in tally.measured
        ],
    )


async def _generate(bed: Bed, question: Question, kills: Sequence[Kill], tally: _Tally) -> None:
    """One generation, with its kills."""
    spans = [bed.model.spans[kill.stage] for kill in kills]
    await _await_spares(bed, spans)
    due = list(spans)
    killing: list[asyncio.Task[None]] = []
    victims: list[Member] = []

    def on_reached(peers_in_use: list[str]) -> None:
        span = due.pop(0)
        member = _victim(bed, span, peers_in_use)
        victims.append(member)
        killing.append(asyncio.create_task(bed.swarm.kill(member)))

    order = question.model_copy(update={"notify_at": [kill.at_token for kill in kills]})
    try:
        measured = await bed.generate(order, on_reached)
    except OrderFailed as error:
        tally.errors.append(str(error))
    else:
        tally.measured.append(measured)
        tally.pauses_s += pauses_s(measured)
    finally:
        await asyncio.gather(*killing)
    tally.kills += len(victims)
    for member in victims:
        await bed.swarm.restart(member)


async def _await_spares(bed: Bed, spans: Sequence[Span]) -> None:
    peers = [m.peer for m in bed.swarm.members if m.is_alive and m.span in spans]
    if peers:
        await bed.swarm.ask(
            AwaitPeers(peers=list(map(str, peers)), limit_s=READY_LIMIT_S), 2 * READY_LIMIT_S
        )


def _victim(bed: Bed, span: Span, peers_in_use: Sequence[str]) -> Member:
    """Who serves the span now; if nobody seems to, one that could."""
    members = [m for m in bed.swarm.members if m.is_alive and m.span == span]
    return next((m for m in members if m.peer in peers_in_use), members[0])


def pauses_s(measured: Measured) -> list[float]:
    """The longest pause between two tokens of any sequences after each moment that was noted."""
    arrivals_s = sorted(itertools.chain.from_iterable(measured.arrivals_s))
    bounds_s = [*measured.reached_s, float("inf")]
    pauses: list[float] = []
    for begins_s, ends_s in itertools.pairwise(bounds_s):
        gaps = [
            after - before
            for before, after in itertools.pairwise(arrivals_s)
            if begins_s <= before < ends_s
        ]
        pauses.append(max(gaps, default=0.0))
    return pauses
