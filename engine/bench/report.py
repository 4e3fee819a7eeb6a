"""From arrivals and counters to the numbers that the bench reports. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from engine.bench.bounds import Limits, compute_bound, latency_bound, link_bound
from engine.bench.deltas import StageDelta, StageTime, client_bytes, ring_bytes, stage_deltas
from engine.bench.measured import Measured
from engine.protocol.frames import HEADER_BYTES
from engine.protocol.rows import ROW_BYTES

_ID_BYTES = 2
"""Of vocabularies up to 65,536 tokens."""


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


class LinkUse(BaseModel):
    """What one link of the ring carries."""

    bytes_per_step: float
    """Frames with everything in them."""
    bytes_per_row: float
    """The same for one token of one sequence."""
    codec_ratio: float | None
    """Encoded over raw size of the hidden states; null on the way back, which carries none."""


class Run(BaseModel):
    """One system's numbers; the repeat whose tokens/s are the median."""

    system: str
    batch_size: int
    micro_batches: int
    """Asked for; 0: Shoal's choice."""
    emulated: bool = False
    tokens_per_s: float
    """Decode steady state, all sequences together."""
    ttft_s: float
    """Until every sequence has its first token."""
    step_ms: StepTime
    step_ms_median: float
    """Between two tokens of one sequence: robust where other work disturbs the measurement."""
    link_bytes_per_step: list[float]
    """Frames from each stage to the next, the last to the first; empty for a single stage."""
    links: list[LinkUse] = []
    """The same links, closer."""
    client_bytes_per_step: float
    """Frames over the client's links, both directions, all sequences."""
    client_bytes_per_sequence_step: float
    client_activation_bytes: int = 0
    """Hidden states over the client's links, in all repeats."""
    bound_tokens_per_s: float | None
    bound_share: float | None
    bound_by: str | None
    """`links` or `compute`."""
    bounds: dict[str, float | None] = {}
    """Both of them."""
    latency_bound_tokens_per_s: float | None = None
    """What this batch cannot exceed, because each token must go around the ring before the next."""
    ids_sha256: str
    kills: int = 0
    recovery_s_median: float | None = None
    stages: list[StageTime] = []
    repeats_tokens_per_s: list[float] = []
    placement: str = ""
    """How the blocks were placed, where that was asked for."""
    spans: list[tuple[int, int]] = []
    """Of the stages in their order."""
    hosts: list[int] = []
    """Of each stage."""
    predicted_tokens_per_s: float | None = None
    """By the planner, from what is known of the machines."""
    prediction_error: float | None = None
    """Predicted over measured, less one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What kind of run it was."""

    micro_batches: int = 0
    hidden_row_bytes: int = 0
    """One token's hidden state, raw."""
    emulated: bool = False


def tokens_per_s(arrivals_s: Sequence[Sequence[float]]) -> float:
    """Decode rate while all sequences decode: the sum of their own rates in that window.

    From when the last sequence has its first token until the first one ends. Each rate is taken
    between two arrivals of its sequence, so the window's edges do not cut into a step. Where some
    end before others begin there is no such window: then it is all new tokens but the first ones,
    over the whole time.
    """
    begins_s = max(times[0] for times in arrivals_s)
    ends_s = min(times[-1] for times in arrivals_s)
    if begins_s >= ends_s:
        whole_s = max(times[-1] for times in arrivals_s) - min(times[0] for times in arrivals_s)
        return sum(len(times) - 1 for times in arrivals_s) / whole_s
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


def plain_run(system: str, repeats: Sequence[Measured], shape: Shape = Shape()) -> Run:
    """The numbers of a swarm whose stages were not asked for counters."""
    chosen, rates = _median_repeat(repeats)
    rate = tokens_per_s(chosen.arrivals_s)
    step_ms = 1e3 * len(chosen.arrivals_s) / rate
    return Run(
        system=system,
        batch_size=len(chosen.arrivals_s),
        micro_batches=shape.micro_batches,
        emulated=shape.emulated,
        tokens_per_s=rate,
        ttft_s=ttft_s(chosen),
        step_ms=StepTime(compute=0.0, encode=0.0, wire=step_ms, wait=0.0),
        step_ms_median=step_ms_median(chosen.arrivals_s),
        link_bytes_per_step=[],
        client_bytes_per_step=0.0,
        client_bytes_per_sequence_step=0.0,
        client_activation_bytes=sum(measured.hidden_bytes for measured in repeats),
        bound_tokens_per_s=None,
        bound_share=None,
        bound_by=None,
        ids_sha256=chosen.ids_sha256,
        repeats_tokens_per_s=rates,
    )


def local_run(system: str, repeats: Sequence[Measured]) -> Run:
    """The numbers of a system without links: all it does is compute."""
    run = plain_run(system, repeats)
    step = StepTime(compute=run.step_ms.wire, encode=0.0, wire=0.0, wait=0.0)
    return run.model_copy(update={"step_ms": step})


def swarm_run(
    system: str,
    repeats: Sequence[Measured],
    warm_ups: Sequence[Measured],
    limits: Limits,
    shape: Shape = Shape(),
) -> Run:
    """The numbers of a swarm.

    Args:
        system: Its name in the report.
        repeats: At least one, alike.
        warm_ups: Runs at other micro-batch sizes, for the compute bound.
        limits: Of links and machines.
        shape: Of the run.
    """
    chosen, _ = _median_repeat(repeats)
    run = plain_run(system, repeats, shape)
    deltas = stage_deltas(chosen)
    step_ms = 1e3 * run.batch_size / run.tokens_per_s
    compute = sum(delta.time.compute for delta in deltas)
    encode = sum(delta.time.encode for delta in deltas)
    wait = sum(delta.time.queue + delta.time.handover for delta in deltas)
    ring, to_client = ring_bytes(chosen, deltas), client_bytes(chosen, deltas)
    bounds = {
        "compute": compute_bound([stage_deltas(run) for run in (*repeats, *warm_ups)], limits),
        "links": link_bound(ring, to_client, run.batch_size, limits),
    }
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    bound_by = min(known, key=lambda name: known[name], default=None)
    bound = None if bound_by is None else known[bound_by]
    return run.model_copy(
        update={
            "step_ms": StepTime(
                compute=compute,
                encode=encode,
                wire=max(0.0, step_ms - compute - encode - wait),
                wait=wait,
            ),
            "link_bytes_per_step": ring,
            "links": _link_uses(ring, deltas, run.batch_size, shape.hidden_row_bytes),
            "client_bytes_per_step": to_client,
            "client_bytes_per_sequence_step": to_client / run.batch_size,
            "bound_tokens_per_s": bound,
            "bound_share": None if bound is None else run.tokens_per_s / bound,
            "bound_by": bound_by,
            "bounds": bounds,
            "latency_bound_tokens_per_s": latency_bound(run.batch_size, limits),
            "stages": [delta.time for delta in deltas],
        }
    )


def _median_repeat(repeats: Sequence[Measured]) -> tuple[Measured, list[float]]:
    """The repeat in the middle, so that all its numbers belong together, and all rates."""
    rates = [tokens_per_s(measured.arrivals_s) for measured in repeats]
    return repeats[rates.index(statistics.median_low(rates))], rates


def _link_uses(
    ring: Sequence[float], deltas: Sequence[StageDelta], batch_size: int, hidden_row_bytes: int
) -> list[LinkUse]:
    uses = []
    for index, (step_bytes, delta) in enumerate(zip(ring, deltas, strict=False)):
        frames = delta.time.forwards * HEADER_BYTES + batch_size * (ROW_BYTES + _ID_BYTES)
        carries_hidden = index < len(ring) - 1 and hidden_row_bytes > 0
        ratio = (step_bytes - frames) / (batch_size * hidden_row_bytes) if carries_hidden else None
        uses.append(
            LinkUse(
                bytes_per_step=step_bytes,
                bytes_per_row=step_bytes / batch_size,
                codec_ratio=ratio,
            )
        )
    return uses
