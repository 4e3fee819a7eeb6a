"""From arrivals and counters to the numbers that the bench reports. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from engine.bench.children import Machine
from engine.bench.measured import Measured


class StepTime(BaseModel):
    """Where the time between two tokens of one sequence goes, in ms, summed over the stages.

    Micro-batches that follow one another through the stages overlap; each is seen on its own here.
    """

    compute: float
    encode: float
    wire: float
    """What the counters do not explain: links, their daemons, the clients' and stages' loops."""
    wait: float
    """In a stage but not computed: queued for the worker, or between agent and worker."""


class StageTime(BaseModel):
    """One stage's part of that, in ms: the means of its forward passes."""

    compute: float
    encode: float
    queue: float
    handover: float
    """Between agent and worker, there and back."""
    forwards: float
    """Passes for each new token of every sequence: above 1 with several micro-batches."""


class Run(BaseModel):
    """One system's numbers; the repeat whose tokens/s are the median."""

    system: str
    tokens_per_s: float
    """Decode steady state, all sequences together."""
    ttft_s: float
    """Until every sequence has its first token."""
    step_ms: StepTime
    step_ms_median: float
    """Between two tokens of one sequence: robust where other work disturbs the measurement."""
    link_bytes_per_step: list[float]
    """Frames from each stage to the next, the last to the first; empty for a single stage."""
    client_bytes_per_step: float
    """Frames over the client's links, both directions, all sequences."""
    client_bytes_per_sequence_step: float
    bound_tokens_per_s: float | None
    bound_share: float | None
    bound_by: str | None
    """`links` or `compute`."""
    ids_sha256: str
    kills: int = 0
    recovery_s_median: float | None = None
    stages: list[StageTime] = []
    repeats_tokens_per_s: list[float] = []


@dataclass(frozen=True, slots=True)
class Limits:
    """What the hardware allows."""

    line_rate_bytes_per_s: float
    """Of every directed link; 0: unknown or unlimited."""
    machines: tuple[Machine, ...]
    """Of each stage; an accelerator counts as a machine of one core."""
    threads: int
    """Cores that one forward pass keeps busy."""


@dataclass(frozen=True, slots=True)
class _StageDelta:
    """What one stage did in the steady part, per step (one new token for every sequence)."""

    steps: float
    time: StageTime
    cpu_s_per_token: float
    sent_bytes: dict[str, float]


def tokens_per_s(arrivals_s: Sequence[Sequence[float]]) -> float:
    """Decode rate while all sequences decode: the sum of their own rates in that window.

    From when the last sequence has its first token until the first one ends. Each rate is taken
    between two arrivals of its sequence, so the window's edges do not cut into a step.
    """
    begins_s = max(times[0] for times in arrivals_s)
    ends_s = min(times[-1] for times in arrivals_s)
    total = 0.0
    for times in arrivals_s:
        inside = [index for index, time_s in enumerate(times) if time_s <= ends_s]
        first = max(index for index, time_s in enumerate(times) if time_s <= begins_s)
        last = inside[-1] if inside else 0
        if last <= first:  # too short a run for the window: all of it, then
            first, last = 0, len(times) - 1
        total += (last - first) / (times[last] - times[first])
    return total


def ttft_s(measured: Measured) -> float:
    """From the request until every sequence has its first token, in seconds."""
    return max(times[0] for times in measured.arrivals_s) - measured.started_s


def step_ms_median(arrivals_s: Sequence[Sequence[float]]) -> float:
    """Median time between two tokens of one sequence, in ms."""
    gaps = [after - before for times in arrivals_s for before, after in itertools.pairwise(times)]
    return 1e3 * statistics.median(gaps)


def local_run(system: str, repeats: Sequence[Measured]) -> Run:
    """The numbers of a system without stages."""
    chosen, rates = _median_repeat(repeats)
    rate = tokens_per_s(chosen.arrivals_s)
    step_ms = 1e3 * len(chosen.arrivals_s) / rate
    return Run(
        system=system,
        tokens_per_s=rate,
        ttft_s=ttft_s(chosen),
        step_ms=StepTime(compute=step_ms, encode=0.0, wire=0.0, wait=0.0),
        step_ms_median=step_ms_median(chosen.arrivals_s),
        link_bytes_per_step=[],
        client_bytes_per_step=0.0,
        client_bytes_per_sequence_step=0.0,
        bound_tokens_per_s=None,
        bound_share=None,
        bound_by=None,
        ids_sha256=chosen.ids_sha256,
        repeats_tokens_per_s=rates,
    )


def swarm_run(
    system: str, repeats: Sequence[Measured], warm_ups: Sequence[Measured], limits: Limits
) -> Run:
    """The numbers of a swarm.

    Args:
        system: Its name in the report.
        repeats: At least one, alike.
        warm_ups: Runs at other micro-batch sizes, for the compute bound.
        limits: Of links and machines.
    """
    chosen, rates = _median_repeat(repeats)
    batch_size = len(chosen.arrivals_s)
    rate = tokens_per_s(chosen.arrivals_s)
    deltas = _deltas(chosen)
    step_ms = 1e3 * batch_size / rate
    compute = sum(delta.time.compute for delta in deltas)
    encode = sum(delta.time.encode for delta in deltas)
    wait = sum(delta.time.queue + delta.time.handover for delta in deltas)
    links = _ring_bytes(chosen, deltas)
    client_bytes = _client_bytes(chosen, deltas)
    bounds = {
        "compute": _compute_bound([_deltas(run) for run in (*repeats, *warm_ups)], limits),
        "links": _link_bound([*links, client_bytes], batch_size, limits),
    }
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    bound_by = min(known, key=lambda name: known[name], default=None)
    bound = None if bound_by is None else known[bound_by]
    return Run(
        system=system,
        tokens_per_s=rate,
        ttft_s=ttft_s(chosen),
        step_ms=StepTime(
            compute=compute,
            encode=encode,
            wire=max(0.0, step_ms - compute - encode - wait),
            wait=wait,
        ),
        step_ms_median=step_ms_median(chosen.arrivals_s),
        link_bytes_per_step=links,
        client_bytes_per_step=client_bytes,
        client_bytes_per_sequence_step=client_bytes / batch_size,
        bound_tokens_per_s=bound,
        bound_share=None if bound is None else rate / bound,
        bound_by=bound_by,
        ids_sha256=chosen.ids_sha256,
        stages=[delta.time for delta in deltas],
        repeats_tokens_per_s=rates,
    )


def _median_repeat(repeats: Sequence[Measured]) -> tuple[Measured, list[float]]:
    """The repeat in the middle, so that all its numbers belong together, and all rates."""
    rates = [tokens_per_s(measured.arrivals_s) for measured in repeats]
    return repeats[rates.index(statistics.median_low(rates))], rates


def _deltas(measured: Measured) -> list[_StageDelta]:
    assert measured.before is not None, "a swarm's run carries counters"
    assert measured.after is not None, "a swarm's run carries counters"
    batch_size = len(measured.arrivals_s)
    deltas = []
    for before, after in zip(measured.before.stages, measured.after.stages, strict=True):
        # A run of very few steps may be over before the counters were asked for.
        tokens = max(1, after.tokens - before.tokens)
        forwards = max(1, after.forwards - before.forwards)
        steps = tokens / batch_size
        compute_s = after.compute_s - before.compute_s
        encode_s = after.encode_s - before.encode_s
        queue_s = after.wait_s - before.wait_s
        handover_s = after.local_s - before.local_s - compute_s - encode_s - queue_s
        deltas.append(
            _StageDelta(
                steps,
                StageTime(
                    compute=1e3 * compute_s / forwards,
                    encode=1e3 * encode_s / forwards,
                    queue=1e3 * queue_s / forwards,
                    handover=1e3 * max(0.0, handover_s) / forwards,
                    forwards=forwards / steps,
                ),
                cpu_s_per_token=compute_s / tokens,
                sent_bytes={
                    peer: (count - before.sent_bytes.get(peer, 0)) / steps
                    for peer, count in after.sent_bytes.items()
                },
            )
        )
    return deltas


def _ring_bytes(measured: Measured, deltas: Sequence[_StageDelta]) -> list[float]:
    if len(measured.hops) == 1:
        return []
    onward = zip(deltas, itertools.chain(measured.hops[1:], measured.hops[:1]), strict=True)
    links = [delta.sent_bytes.get(peer, 0.0) for delta, peer in onward]
    # The ids of a sequence's last step are not sent round again.
    steps = deltas[-1].steps
    links[-1] *= steps / (steps - 1) if steps > 1 else 1
    return links


def _client_bytes(measured: Measured, deltas: Sequence[_StageDelta]) -> float:
    assert measured.before is not None, "a swarm's run carries counters"
    assert measured.after is not None, "a swarm's run carries counters"
    sent = sum(measured.after.client_sent_bytes.values()) - sum(
        measured.before.client_sent_bytes.values()
    )
    steps = max(1, len(measured.arrivals_s[0]) - 1)
    return sum(delta.sent_bytes.get(measured.client, 0.0) for delta in deltas) + sent / steps


def _compute_bound(runs: Sequence[Sequence[_StageDelta]], limits: Limits) -> float | None:
    """Tokens/s when all cores compute all the time, each stage at its best micro-batch seen."""
    cpu_s: dict[Machine, float] = defaultdict(float)
    for stage, machine in enumerate(limits.machines):
        costs = [run[stage].cpu_s_per_token for run in runs if run[stage].cpu_s_per_token > 0]
        if not costs:
            return None
        cpu_s[machine] += min(costs) * limits.threads
    return min(machine.cores / seconds for machine, seconds in cpu_s.items())


def _link_bound(bytes_per_step: Sequence[float], batch_size: int, limits: Limits) -> float | None:
    """Tokens/s that the busiest link carries at its line rate."""
    busiest = max(bytes_per_step)
    if not limits.line_rate_bytes_per_s or not busiest:
        return None
    return limits.line_rate_bytes_per_s / (busiest / batch_size)
