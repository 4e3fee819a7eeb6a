"""How long a step takes when its micro-batches flow through stages and lines: one formula each.

Two shapes of pipeline: Shoal's closed ring, where a micro-batch begins its next step by itself, and
the papers' chain, where the client is in the loop and begins a step when all of it has come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engine.core.profiles import Calibration

UNCALIBRATED: Final = Calibration()


class Form(StrEnum):
    """What a step's time is made of."""

    RING = "ring"
    """The slower of one way round and what the busiest part has to do for all micro-batches."""
    CHAIN = "chain"
    """One way through, and then the busiest part once for each further micro-batch."""
    SUM = "sum"
    """One way round alone."""
    BOTTLENECK = "bottleneck"
    """The busiest part alone."""


@dataclass(frozen=True, slots=True)
class StageTimes:
    """One micro-batch at a stage and on the line that follows; seconds, or any other unit of time.

    The last stage's line carries ids only.
    """

    pass_s: float
    """Of the worker."""
    encode_s: float = 0.0
    line_s: float = 0.0
    decode_s: float = 0.0
    delay_s: float = 0.0
    owed_s: float = 0.0
    """Prefill per step that the stage does beside decoding: it fills gaps, and makes none."""
    line_owed_s: float = 0.0
    """The same for the line."""
    frames_s: float = 0.0
    """Agent and p2pd's part of the pass."""
    frames_share: float = 0.0
    """How much of that the worker waits for, because they compute on its cores."""

    @property
    def way_s(self) -> float:
        """Through the stage and to the next one."""
        line_s = self.encode_s + self.line_s + self.decode_s + self.delay_s
        return self.stage_s + line_s

    @property
    def stage_s(self) -> float:
        """Through the stage."""
        return self.pass_s + self.frames_s

    def load_s(self, num_microbatches: int) -> float:
        """How long the stage is busy in a step."""
        busy_s = self.pass_s + self.frames_share * self.frames_s
        return num_microbatches * busy_s + self.owed_s

    def line_load_s(self, num_microbatches: int) -> float:
        """How long the line is busy in a step: encoding, sending and decoding overlap."""
        busiest_s = max(self.encode_s, self.line_s, self.decode_s)
        return num_microbatches * busiest_s + self.line_owed_s


def way_round_s(stages: Sequence[StageTimes]) -> float:
    """One micro-batch's way through all stages and lines."""
    return sum(stage.way_s for stage in stages)


def busiest_s(stages: Sequence[StageTimes], num_microbatches: int) -> float:
    """What the busiest stage or line has to do in a step."""
    return max(
        max(stage.load_s(num_microbatches), stage.line_load_s(num_microbatches)) for stage in stages
    )


def step_s(
    stages: Sequence[StageTimes],
    num_microbatches: int,
    calibration: Calibration = UNCALIBRATED,
    *,
    form: Form = Form.RING,
) -> float:
    """Time in which every row of the batch gets its next token.

    [BB] eq. 4 charges delays once per cycle and misses measurements by a third. In its flow form,
    `CHAIN`, it is `C + Σ comp_b + Σ(λ + V_b/bw) + (M-1)·(max(comp_b, V_b/bw) + o)`. In a ring,
    micro-batches start their next step by themselves, so the pipeline is filled once and not once a
    step: `C + max(Σ comp_b + Σ(λ + V_b/bw), M·max(comp_b, V_b/bw)) + (M-1)·o`.

    Args:
        stages: One micro-batch's times, in order, at least one.
        num_microbatches: M.
        calibration: C and o.
        form: Of the pipeline.
    """
    way_s, load_s = way_round_s(stages), busiest_s(stages, num_microbatches)
    return calibrated(
        combined(form, way_s, load_s, num_microbatches), overhead_s(num_microbatches, calibration)
    )


def combined(form: Form, way: float, load: float, num_microbatches: int) -> float:
    """A step's time from its two parts, without overhead; never falls when one of them grows.

    Args:
        form: Of the pipeline.
        way: One micro-batch's way round.
        load: What the busiest part has to do for all of them.
        num_microbatches: M.
    """
    match form:
        case Form.RING:
            return max(way, load)
        case Form.CHAIN:
            return way + load - load / num_microbatches
        case Form.SUM:
            return way
        case Form.BOTTLENECK:
            return load


def calibrated(parts: float, overhead: float) -> float:
    """A step's time from what its parts take and what a fit adds to that.

    A fit adds less than nothing where the parts count something twice, so at most a half of them.
    """
    return max(parts + overhead, parts / 2)


def overhead_s(num_microbatches: int, calibration: Calibration) -> float:
    """What a fit to measurements adds to a step."""
    return calibration.step_overhead_s + (num_microbatches - 1) * calibration.micro_batch_overhead_s
