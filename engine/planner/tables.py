"""A question for the solvers: what every machine would take for every length of span, in integers.

Times are nanoseconds, so that equal measurements give equal plans on every machine and in every
order of adding up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.core.profiles import Calibration, ModelSize
from engine.planner.costs import (
    Work,
    block_s,
    ends_bytes,
    frames_s,
    ids_s,
    line_times,
    ram_share,
    ram_tokens,
    workspace_bytes,
)
from engine.planner.fleet import Fleet
from engine.planner.flow import UNCALIBRATED, Form, calibrated, combined, overhead_s

NEVER: Final = 1 << 60
"""More than any plan takes; four of them still fit into 64 bits."""
_LONGEST_NS: Final = 10**12
"""A pass that takes longer takes for ever: sums must not overflow."""

MIDDLE: Final = 0
FIRST: Final = 1
LAST: Final = 2
ROLES: Final = 4
"""What a stage may be, as bits: its place decides what it holds and does beside its blocks."""

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """How to divide the blocks, for one choice of all else."""

    form: Form
    num_microbatches: int
    stage_ns: Times
    """One micro-batch's pass, [N, ROLES, L + 1]; NEVER where the span does not fit or is empty."""
    load_ns: Times
    """What a stage does in a step, of the same shape."""
    link_ns: Times
    """Hidden states from row to column, [N, N]."""
    link_load_ns: Times
    back_ns: Times
    """Ids from the last stage to the first, [N, N]."""
    back_load_ns: Times
    fixed_way_ns: int = 0
    """Drafting, before a micro-batch goes round."""
    overhead_ns: int = 0

    @property
    def num_blocks(self) -> int:
        """L."""
        return int(self.stage_ns.shape[2]) - 1

    def step_ns(self, way_ns: int, load_ns: int) -> int:
        """A step's time from its two parts; never falls when one of them grows."""
        way_ns += self.fixed_way_ns
        if self.form is Form.CHAIN:
            parts_ns = way_ns + load_ns - load_ns // self.num_microbatches
        else:
            parts_ns = int(combined(self.form, way_ns, load_ns, self.num_microbatches))
        return int(calibrated(parts_ns, self.overhead_ns))

    def of_places(self, places: Sequence[int]) -> Question:
        """The same for some of the machines."""
        rows, pairs = list(places), np.ix_(places, places)
        return replace(
            self,
            stage_ns=self.stage_ns[rows],
            load_ns=self.load_ns[rows],
            link_ns=self.link_ns[pairs],
            link_load_ns=self.link_load_ns[pairs],
            back_ns=self.back_ns[pairs],
            back_load_ns=self.back_load_ns[pairs],
        )

    def with_penalties(self, penalties_ns: Times) -> Question:
        """The same with slower machines, [N]: each takes so much longer whatever it does."""
        more = penalties_ns[:, None, None]
        return replace(
            self,
            stage_ns=np.minimum(self.stage_ns + more, NEVER),
            load_ns=np.minimum(self.load_ns + more, NEVER),
        )


def question(
    fleet: Fleet,
    model: ModelSize,
    work: Work,
    calibration: Calibration = UNCALIBRATED,
    *,
    form: Form = Form.RING,
    is_answer_alone: bool = False,
) -> Question:
    """Work out the tables.

    Args:
        fleet: N machines.
        model: L blocks.
        work: B, M and what a step asks for.
        calibration: C and o.
        form: Of the pipeline.
        is_answer_alone: Nobody else's steps fill the gaps while a prompt is computed, so that
            prefill adds to the way round, spread over the answer's steps, and not to the load.
            Exact where the prompts go through the stages in one part.
    """
    lengths = np.arange(1, model.num_blocks + 1)
    shape = (len(fleet), ROLES, model.num_blocks + 1)
    stage_ns = np.full(shape, NEVER, dtype=np.int64)
    load_ns = np.full(shape, NEVER, dtype=np.int64)
    fixed_bytes = role_bytes(model, work)
    tokens = np.array(
        [[work.first_tokens if role & FIRST else work.later_tokens] for role in range(ROLES)],
        dtype=np.float64,
    )
    is_last = np.array([[role & LAST] for role in range(ROLES)]) > 0
    ends = np.array([[role.bit_count()] for role in range(ROLES)], dtype=np.float64)
    for place, profile in enumerate(fleet.profiles):
        in_ram = ram_tokens(profile, model, work, lengths, fixed_bytes)
        fits = np.isfinite(in_ram)
        share = ram_share(np.where(fits, in_ram, 0.0), work.cached_tokens)
        one_ns = whole_ns(block_s(profile, tokens, work.cached_tokens, share))
        head_s = is_last * (profile.head.base_s + tokens * profile.head.unit_s)
        ends_ns = whole_ns(profile.pass_overhead_s + head_s)
        pass_ns = ends_ns + np.minimum(one_ns, _LONGEST_NS) * lengths
        handing_s = frames_s(profile, model, work.later_tokens, ends)
        worked_ns = pass_ns + whole_ns(profile.frame_shares_cores * handing_s)
        owed_one = min(int(whole_ns(profile.block.prefill_row_s * work.owed_tokens)), _LONGEST_NS)
        owed_ns: Times = owed_one * lengths
        way_ns = pass_ns + whole_ns(handing_s)
        if is_answer_alone:
            once_s = profile.pass_overhead_s + is_last * profile.head.of(work.rows)
            once_s = once_s + frames_s(profile, model, work.prompt_tokens, ends)
            way_ns = way_ns + owed_ns + whole_ns(work.owed_share * once_s)
        fits &= np.maximum(way_ns, owed_ns) < _LONGEST_NS
        stage_ns[place, :, 1:] = np.where(fits, way_ns, NEVER)
        load = work.num_microbatches * np.minimum(worked_ns, _LONGEST_NS) + owed_ns
        load_ns[place, :, 1:] = np.where(fits, load, NEVER)
    back_s = ids_s(fleet, work.rows)
    way = line_times(fleet, model, work.later_tokens, work.codec_ratio)
    owed = line_times(fleet, model, work.owed_tokens, work.codec_ratio)
    link_ns = whole_ns(way.way_s) + whole_ns(fleet.delay_s)
    if is_answer_alone and work.owed_share:
        once = line_times(fleet, model, work.prompt_tokens, work.codec_ratio)
        link_ns = link_ns + whole_ns(work.owed_share * (once.way_s + fleet.delay_s))
    busy_ns, owed_ns = whole_ns(way.busy_s), whole_ns(owed.busy_s)
    is_line = np.maximum(np.maximum(busy_ns, owed_ns), link_ns) < NEVER
    link_load_ns = work.num_microbatches * np.where(is_line, busy_ns, 0) + owed_ns
    back_ns, back_busy_ns = whole_ns(fleet.delay_s + back_s), whole_ns(back_s)
    is_back = np.maximum(back_ns, back_busy_ns) < NEVER
    back_load_ns = work.num_microbatches * np.where(is_back, back_busy_ns, 0)
    return Question(
        form,
        work.num_microbatches,
        stage_ns,
        load_ns,
        np.where(is_line, link_ns, NEVER),
        np.where(is_line, link_load_ns, NEVER),
        np.where(is_back, back_ns, NEVER),
        np.where(is_back, back_load_ns, NEVER),
        int(whole_ns(work.draft_s)),
        int(whole_ns(overhead_s(work.num_microbatches, calibration))),
    )


def role_bytes(model: ModelSize, work: Work) -> NDArray[np.int64]:
    """What a stage holds beside blocks and cache, [ROLES, 1]."""
    return np.array(
        [
            [
                ends_bytes(model, is_first=bool(role & FIRST), is_last=bool(role & LAST))
                + workspace_bytes(model, work.first_tokens if role & FIRST else work.later_tokens)
            ]
            for role in range(ROLES)
        ]
    )


def whole_ns(seconds: NDArray[np.float64] | float) -> Times:
    """Nanoseconds; NEVER for what takes for ever."""
    value = np.asarray(seconds, dtype=np.float64)
    is_short = value < _LONGEST_NS / 1e9
    return np.where(is_short, np.rint(np.where(is_short, value, 0.0) * 1e9), NEVER).astype(np.int64)
