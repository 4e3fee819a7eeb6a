"""What hardware and lines allow: the rates that a run is held against (design §12). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from engine.bench.children import Machine
from engine.bench.deltas import StageDelta


@dataclass(frozen=True, slots=True)
class Limits:
    """What the hardware allows."""

    line_rate_bytes_per_s: float
    """Of every directed link; 0: unknown or unlimited."""
    machines: tuple[Machine, ...]
    """Of each stage."""
    on_accelerator: bool = False
    """The stages compute on their machines' accelerators, one each."""
    emulated_tokens_per_s: float = 0.0
    """Of one emulated stage's accelerator, at its best; 0: nothing is emulated."""
    ring_s: float = 0.0
    """The least time of a token around the ring: delays, and emulated passes."""
    ideal_client_link: bool = False
    """No line limits the client's links and the way back from the last stage to the first."""


def compute_bound(runs: Sequence[Sequence[StageDelta]], limits: Limits) -> float | None:
    """Tokens/s when everything computes all the time, each stage at its best micro-batch seen.

    Cores over processor seconds per token; an accelerator counts as one core that is busy for as
    long as a forward pass takes. None when nothing was computed.
    """
    if limits.emulated_tokens_per_s:
        return limits.emulated_tokens_per_s
    busy_s: dict[Machine, float] = defaultdict(float)
    for stage, machine in enumerate(limits.machines):
        costs_s = [
            run[stage].compute_s_per_token if limits.on_accelerator else run[stage].cpu_s_per_token
            for run in runs
        ]
        costs_s = [cost_s for cost_s in costs_s if cost_s > 0]
        if not costs_s:
            return None
        busy_s[machine] += min(costs_s)
    return min(
        (1 if limits.on_accelerator else machine.cores) / seconds
        for machine, seconds in busy_s.items()
    )


def link_bound(
    ring_bytes: Sequence[float], client_bytes: float, batch_size: int, limits: Limits
) -> float | None:
    """Tokens/s that the busiest link carries at its line rate; None when no line is limited.

    Args:
        ring_bytes: Per step, of each link of the ring; the last one leads back to the first stage.
        client_bytes: Per step, of the client's links.
        batch_size: Tokens of a step.
        limits: See there.
    """
    limited = list(ring_bytes[:-1]) if limits.ideal_client_link else [*ring_bytes, client_bytes]
    busiest = max(limited, default=0.0)
    if not limits.line_rate_bytes_per_s or not busiest:
        return None
    return limits.line_rate_bytes_per_s / (busiest / batch_size)


def latency_bound(batch_size: int, limits: Limits) -> float | None:
    """Tokens/s of a batch of this size, each of whose tokens must go around the ring first.

    No part of the bound that a run is held against: with B free to choose it can be moved.
    """
    return batch_size / limits.ring_s if limits.ring_s else None
