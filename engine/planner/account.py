"""What a pipeline takes, part by part: for a plan just found, or for any other one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.plans import PlannedStage, Span
from engine.core.profiles import Calibration, ModelSize, Objective
from engine.planner.costs import (
    FRAME_BYTES,
    PREFILL_CHUNK_TOKENS,
    ROW_BYTES,
    Work,
    line_times,
    pass_s,
    ram_share,
    ram_tokens,
)
from engine.planner.fleet import Fleet
from engine.planner.flow import Form, StageTimes, busiest_s, step_s, way_round_s
from engine.planner.partition import Partition
from engine.planner.tables import FIRST, LAST, role_bytes


@dataclass(frozen=True, slots=True)
class Account:
    """A pipeline's parts and what comes of them."""

    stages: tuple[PlannedStage, ...]
    work: Work
    times: tuple[StageTimes, ...]
    """One micro-batch's, decoding."""
    is_encoded: tuple[bool, ...]
    """Whether the line after each stage is."""
    step_s: float
    prefill_s: float
    """Until the prompts of the whole batch are computed."""
    power_w: float
    euro_per_hour: float

    @property
    def tokens_per_s(self) -> float:
        """Of the whole batch, decoding."""
        tokens = self.work.batch_size * self.work.committed_tokens
        return tokens / self.step_s if self.step_s else math.inf

    @property
    def busiest(self) -> tuple[int, bool]:
        """Index of the stage that binds, and whether it is the line after it that does."""
        loads = [
            (
                times.line_load_s(self.work.num_microbatches)
                if is_line
                else times.load_s(self.work.num_microbatches),
                -index,
                is_line,
            )
            for index, times in enumerate(self.times)
            for is_line in (False, True)
        ]
        _, index, is_line = max(loads)
        return -index, is_line

    @property
    def is_bound_by_way(self) -> bool:
        """Whether the way round takes longer than the busiest part is busy."""
        return way_round_s(self.times) > busiest_s(self.times, self.work.num_microbatches)


def account(
    fleet: Fleet,
    model: ModelSize,
    stages: Sequence[PlannedStage],
    work: Work,
    objective: Objective,
    calibration: Calibration,
    *,
    form: Form = Form.RING,
) -> Account:
    """Work out what these stages take.

    Args:
        fleet: The machines.
        model: The model.
        stages: Its blocks, in order.
        work: B, M and what a step asks for.
        objective: For the prompts' length.
        calibration: C and o.
        form: Of the pipeline.
    """
    decoding = replace(work, owed_tokens=0.0)
    times, is_encoded = _times(fleet, model, stages, decoding)
    prompt_tokens = work.batch_size * objective.prompt_tokens
    chunks = max(1, math.ceil(prompt_tokens / PREFILL_CHUNK_TOKENS))
    prefill = _prefill_times(fleet, model, stages, work, prompt_tokens / chunks)
    places = [fleet.peers.index(stage.peer) for stage in stages]
    return Account(
        tuple(stages),
        work,
        times,
        is_encoded,
        work.draft_s + step_s(times, work.num_microbatches, calibration, form=form),
        step_s(prefill, chunks, form=Form.CHAIN) if prompt_tokens else 0.0,
        sum(fleet.profiles[place].power_w for place in places),
        sum(fleet.profiles[place].euro_per_hour for place in places),
    )


def planned_stages(
    fleet: Fleet, model: ModelSize, partition: Partition, work: Work
) -> tuple[PlannedStage, ...]:
    """Spans, and what follows for the caches."""
    out, start, last = [], 0, len(partition.shares) - 1
    fixed = role_bytes(model, work)
    for index, share in enumerate(partition.shares):
        role = FIRST * (index == 0) | LAST * (index == last)
        length = np.array([share.length])
        moved = ram_tokens(fleet.profiles[share.place], model, work, length, fixed[role])
        span = Span(start, start + share.length)
        ratio = float(moved[0]) / max(1, work.capacity_tokens)
        out.append(PlannedStage(fleet.peers[share.place], span, ratio))
        start = span.end
    return tuple(out)


def _times(
    fleet: Fleet, model: ModelSize, stages: Sequence[PlannedStage], work: Work
) -> tuple[tuple[StageTimes, ...], tuple[bool, ...]]:
    places = [fleet.peers.index(stage.peer) for stage in stages]
    lines = line_times(fleet, model, work.later_tokens, work.codec_ratio)
    out, is_encoded = [], []
    for index, (place, stage) in enumerate(zip(places, stages, strict=True)):
        profile, is_last = fleet.profiles[place], index == len(stages) - 1
        share = ram_share(
            math.ceil(stage.kv_offload_ratio * work.capacity_tokens - 1e-6), work.cached_tokens
        )
        tokens = work.first_tokens if index == 0 else work.later_tokens
        time_s = pass_s(
            profile,
            len(stage.span),
            tokens,
            work.cached_tokens,
            float(share),
            is_last=is_last,
            overlapping=work.overlapping,
        )
        hop = (place, places[(index + 1) % len(stages)])
        if len(stages) == 1:
            out.append(StageTimes(time_s))
        elif is_last:
            ids_s = (FRAME_BYTES + work.rows * ROW_BYTES) / float(fleet.bytes_per_s[hop])
            out.append(StageTimes(time_s, 0.0, ids_s, 0.0, float(fleet.delay_s[hop])))
        else:
            out.append(
                StageTimes(
                    time_s,
                    float(lines.encode_s[hop]),
                    float(lines.line_s[hop]),
                    float(lines.decode_s[hop]),
                    float(fleet.delay_s[hop]),
                )
            )
        is_encoded.append(len(stages) > 1 and not is_last and bool(lines.is_encoded[hop]))
    return tuple(out), tuple(is_encoded)


def _prefill_times(
    fleet: Fleet, model: ModelSize, stages: Sequence[PlannedStage], work: Work, tokens: float
) -> list[StageTimes]:
    """One part of the prompts."""
    places = [fleet.peers.index(stage.peer) for stage in stages]
    lines = line_times(fleet, model, tokens, work.codec_ratio)
    out = []
    for index, (place, stage) in enumerate(zip(places, stages, strict=True)):
        profile, is_last = fleet.profiles[place], index == len(stages) - 1
        time_s = profile.pass_overhead_s + len(stage.span) * profile.block.prefill_row_s * tokens
        if is_last:
            out.append(StageTimes(time_s + profile.head.of(work.rows)))
            continue
        hop = (place, places[index + 1])
        out.append(
            StageTimes(
                time_s,
                float(lines.encode_s[hop]),
                float(lines.line_s[hop]),
                float(lines.decode_s[hop]),
                float(fleet.delay_s[hop]),
            )
        )
    return out
