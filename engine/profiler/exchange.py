"""What a frame costs the two agents that hand it on: real frames between two real peers on this machine.

The peers live in a process of their own (`profiler.exchange_process`), so that nothing else that the
asking process does counts, and neither does what two p2pd leave behind.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from engine.localapi.measurements import FittedTime
from engine.profiler.fit import Point, fit
from engine.profiler.measuring_process import measuring_process

EXCHANGE_S: Final = 2.0


class ExchangeOrder(BaseModel):
    """What to exchange."""

    model_config = ConfigDict(frozen=True)

    token_bytes: int
    """Of one token's hidden states."""
    exchange_s: float
    """How long to exchange frames, all sizes together."""


class FrameSamples(BaseModel):
    """Processor time of frames: agents and p2pd, sender's and receiver's together."""

    payload_bytes: int
    frame_s: list[float]


class ExchangeSamples(BaseModel):
    """All that the process has measured."""

    frames: list[FrameSamples]
    stretch: float
    """How long a second of processor time takes: more than one where others share the processor."""


class FrameCost(NamedTuple):
    """What frames cost, and whom."""

    time: FittedTime
    """Seconds per frame, and per byte of its payload, on processors as busy as they are: sending it
    here and taking it in there, p2pd's part included. A stage does as much for a pass: it takes one
    frame in and sends another."""
    stretch: float
    """See `ExchangeSamples`."""


async def measure_exchange(order: ExchangeOrder) -> FrameCost:
    """Measure; cancelling ends the process at once.

    Args:
        order: What to exchange.

    Raises:
        WorkerFailed: The process ended unexpectedly.
    """
    async with measuring_process("engine.profiler.exchange_process") as process:
        process.say(order.model_dump_json())
        samples = ExchangeSamples.model_validate(await process.line())
    found = fit(
        [
            Point((1, frame.payload_bytes), [samples.stretch * s for s in frame.frame_s])
            for frame in samples.frames
        ]
    )
    time = FittedTime(
        base_s=found.quantity(0, "s"),
        unit_s=found.quantity(1, "s/B"),
        residual=found.residual,
    )
    return FrameCost(time, samples.stretch)
