"""What a pipeline takes, part by part: for a plan just found, or for any other one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.plans import PlannedStage, Span
from engine.core.profiles import Calibration, Goal, ModelSize, NodeProfile, Objective
from engine.planner.costs import (
    PREFILL_CHUNK_TOKENS,
    LineTimes,
    Work,
    frames_s,
    ids_s,
    line_times,
    pass_s,
    ram_share,
    ram_tokens,
)
from engine.planner.fleet import Fleet
from engine.planner.flow import (
    Form,
    StageTimes,
    busiest_s,
    calibrated,
    combined,
    overhead_s,
    step_s,
    way_round_s,
)
from engine.planner.partition import Partition
from engine.planner.tables import FIRST, LAST, role_bytes


@dataclass(frozen=True, slots=True)
class Account:
    """A pipeline's parts and what comes of them."""

    stages: tuple[PlannedStage, ...]
    work: Work
    times: tuple[StageTimes, ...]
    """One micro-batch's, decoding."""
    plain_times: tuple[StageTimes, ...]
    """The same without drafting."""
    is_encoded: tuple[bool, ...]
    """Whether the line after each stage is."""
    step_s: float
    prefill_s: float
    """Until the prompts of the whole batch are computed."""
    sustained_tokens_per_s: float
    """See `core.plans.Plan`."""
    power_w: float
    euro_per_hour: float

    @property
    def tokens_per_s(self) -> float:
        """Of the whole batch, decoding."""
        tokens = self.work.batch_size * self.work.committed_tokens
        return tokens / self.step_s if self.step_s else math.inf

    @property
    def token_s(self) -> float:
        """How long each row waits for a token."""
        return self.step_s / self.work.committed_tokens

    @property
    def way_s(self) -> float:
        """One micro-batch's way round, drafting included."""
        return self.work.draft_s + way_round_s(self.times)

    @property
    def load_s(self) -> float:
        """What the busiest stage or line does in a step."""
        return busiest_s(self.times, self.work.num_microbatches)

    @property
    def is_bound_by_way(self) -> bool:
        """Whether the way round takes longer than the busiest part is busy."""
        return self.way_s > self.load_s

    @property
    def busiest(self) -> tuple[int, bool]:
        """Index of the stage that is busiest, and whether it is the line after it that is."""
        number = self.work.num_microbatches
        return _largest([(t.load_s(number), t.line_load_s(number)) for t in self.times])

    @property
    def longest(self) -> tuple[int, bool]:
        """Index of the stage with the largest part of the way round, or whose line has it."""
        return _largest([(t.stage_s, t.way_s - t.stage_s) for t in self.times])


def _largest(parts: Sequence[tuple[float, float]]) -> tuple[int, bool]:
    """Where the largest of all is, and whether it is a second one; the first among equals."""
    _, index, is_line = max(
        (part, -index, is_line)
        for index, both in enumerate(parts)
        for is_line, part in zip((False, True), both, strict=True)
    )
    return -index, is_line


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
    plain_times, _ = _times(fleet, model, stages, replace(decoding, tree_size=0))
    busy_times, _ = _times(fleet, model, stages, work)
    time_s = _step_s(times, work, calibration, form)
    prompt_tokens = work.batch_size * objective.prompt_tokens
    chunks = max(1, math.ceil(prompt_tokens / PREFILL_CHUNK_TOKENS))
    prefill = _prefill_times(fleet, model, stages, work, prompt_tokens / chunks)
    prefill_s = step_s(prefill, chunks, form=Form.CHAIN) if prompt_tokens else 0.0
    if objective.goal is Goal.LATENCY and objective.counts_prompts:
        rounds = max(1.0, objective.new_tokens / work.committed_tokens)
        whole_s = time_s + prefill_s / rounds
    else:
        whole_s = _step_s(busy_times, work, calibration, form)
    tokens = work.batch_size * work.committed_tokens
    places = [fleet.peers.index(stage.peer) for stage in stages]
    return Account(
        tuple(stages),
        work,
        times,
        plain_times,
        is_encoded,
        time_s,
        prefill_s,
        tokens / whole_s if whole_s else math.inf,
        sum(fleet.profiles[place].power_w for place in places),
        sum(fleet.profiles[place].euro_per_hour for place in places),
    )


def _step_s(times: Sequence[StageTimes], work: Work, calibration: Calibration, form: Form) -> float:
    number = work.num_microbatches
    way_s = work.draft_s + way_round_s(times)
    parts_s = combined(form, way_s, busiest_s(times, number), number)
    return calibrated(parts_s, overhead_s(number, calibration))


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
    lines = line_times(fleet, model, work.later_tokens, work.codec_ratio)
    owed_lines = line_times(fleet, model, work.owed_tokens, work.codec_ratio)
    ids = ids_s(fleet, work.rows)
    places = [fleet.peers.index(stage.peer) for stage in stages]
    out, is_encoded = [], []
    for index, (place, stage) in enumerate(zip(places, stages, strict=True)):
        profile, is_last = fleet.profiles[place], index == len(stages) - 1
        time_s = pass_s(
            profile,
            len(stage.span),
            work.first_tokens if index == 0 else work.later_tokens,
            work.cached_tokens,
            share_in_ram(stage, work),
            is_last=is_last,
        )
        owed_s = len(stage.span) * profile.block.prefill_row_s * work.owed_tokens
        hop = (place, places[(index + 1) % len(stages)])
        delay_s = float(fleet.delay_s[hop])
        if len(stages) == 1:
            times = StageTimes(time_s)
        elif is_last:
            times = StageTimes(time_s, line_s=float(ids[hop]), delay_s=delay_s)
        else:
            times = _with_line(time_s, lines, hop, delay_s)
            times = replace(times, line_owed_s=float(owed_lines.busy_s[hop]))
        handing = _handing(profile, model, work.later_tokens, index, len(stages))
        out.append(replace(times, owed_s=owed_s, **handing))
        is_encoded.append(not is_last and bool(lines.is_encoded[hop]))
    return tuple(out), tuple(is_encoded)


def share_in_ram(stage: PlannedStage, work: Work) -> float:
    """α of the tokens that are cached on average: the oldest positions lie in RAM."""
    # A whole number of tokens: what the division left behind must not make it one more.
    tokens = math.ceil(stage.kv_offload_ratio * work.capacity_tokens - 1e-6)
    return float(ram_share(float(tokens), work.cached_tokens))


def _prefill_times(
    fleet: Fleet, model: ModelSize, stages: Sequence[PlannedStage], work: Work, tokens: float
) -> list[StageTimes]:
    """One part of the prompts."""
    lines = line_times(fleet, model, tokens, work.codec_ratio)
    places = [fleet.peers.index(stage.peer) for stage in stages]
    out = []
    for index, (place, stage) in enumerate(zip(places, stages, strict=True)):
        profile = fleet.profiles[place]
        time_s = profile.pass_overhead_s + len(stage.span) * profile.block.prefill_row_s * tokens
        if index == len(stages) - 1:
            times = StageTimes(time_s + profile.head.of(work.rows))
        else:
            hop = (place, places[index + 1])
            times = _with_line(time_s, lines, hop, float(fleet.delay_s[hop]))
        out.append(replace(times, **_handing(profile, model, tokens, index, len(stages))))
    return out


def _handing(
    profile: NodeProfile, model: ModelSize, tokens: float, index: int, num_stages: int
) -> dict[str, float]:
    """What agent and p2pd take of one of the stages, as fields of `StageTimes`."""
    ends = (index == 0) + (index == num_stages - 1)
    time_s = frames_s(profile, model, tokens, float(ends))
    return {"frames_s": time_s, "frames_share": float(profile.frame_shares_cores)}


def _with_line(time_s: float, lines: LineTimes, hop: tuple[int, int], delay_s: float) -> StageTimes:
    return StageTimes(
        time_s,
        float(lines.encode_s[hop]),
        float(lines.line_s[hop]),
        float(lines.decode_s[hop]),
        delay_s,
    )
