"""What the stages did between two looks at their counters. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from engine.bench.measured import Measured


class StageTime(BaseModel):
    """One stage's part of a step, in ms: the means of its forward passes."""

    compute: float
    encode: float
    queue: float
    handover: float
    """Between agent and worker, there and back."""
    forwards: float
    """Passes for each new token of every sequence: above 1 with several micro-batches."""


@dataclass(frozen=True, slots=True)
class StageDelta:
    """What one stage did in the steady part, per step (one new token for every sequence)."""

    steps: float
    time: StageTime
    compute_s_per_token: float
    """Time of forward passes."""
    cpu_s_per_token: float
    """Processor time of all threads in them."""
    sent_bytes: dict[str, float]
    """Frames of rows, per receiving peer."""


def stage_deltas(measured: Measured) -> list[StageDelta]:
    """Of each stage of the route, from the first moment of the steady part to its end."""
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
            StageDelta(
                steps,
                StageTime(
                    compute=1e3 * compute_s / forwards,
                    encode=1e3 * encode_s / forwards,
                    queue=1e3 * queue_s / forwards,
                    handover=1e3 * max(0.0, handover_s) / forwards,
                    forwards=forwards / steps,
                ),
                compute_s_per_token=compute_s / tokens,
                cpu_s_per_token=(after.cpu_s - before.cpu_s) / tokens,
                sent_bytes={
                    peer: (count - before.sent_bytes.get(peer, 0)) / steps
                    for peer, count in after.sent_bytes.items()
                },
            )
        )
    return deltas


def ring_bytes(measured: Measured, deltas: Sequence[StageDelta]) -> list[float]:
    """Frames from each stage to the next and from the last to the first, bytes per step.

    Empty for a single stage.
    """
    if len(measured.hops) == 1:
        return []
    onward = zip(deltas, itertools.chain(measured.hops[1:], measured.hops[:1]), strict=True)
    links = [delta.sent_bytes.get(peer, 0.0) for delta, peer in onward]
    # The ids of a sequence's last step are not sent round again.
    steps = deltas[-1].steps
    links[-1] *= steps / (steps - 1) if steps > 1 else 1
    return links


def client_bytes(measured: Measured, deltas: Sequence[StageDelta]) -> float:
    """Frames over the client's links in both directions, bytes per step."""
    assert measured.before is not None, "a swarm's run carries counters"
    assert measured.after is not None, "a swarm's run carries counters"
    sent = sum(measured.after.client_sent_bytes.values()) - sum(
        measured.before.client_sent_bytes.values()
    )
    steps = max(1, len(measured.arrivals_s[0]) - 1)
    return sum(delta.sent_bytes.get(measured.client, 0.0) for delta in deltas) + sent / steps
