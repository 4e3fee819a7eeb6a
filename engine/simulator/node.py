"""A machine that is there now: what it holds, what it is about to do, and what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random
from typing import Final

from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState
from engine.simulator.scenario import Machine

PER_TOKEN: Final = 1000


@dataclass(slots=True, eq=False)
class Node:
    """A machine that is there."""

    machine: Machine
    since_s: float
    rng: Random
    max_blocks: int
    block_s: float
    """As announced."""
    span: Span
    is_serving: bool = False
    next_span: Span | None = None
    """Announced."""
    is_moving: bool = False

    @property
    def rate(self) -> int:
        """What it really gives each of its blocks, in thousandths of a token/s."""
        return round(self.machine.tokens_per_s(len(self.span)) * PER_TOKEN)

    def stage(self) -> StageInfo:
        """What it announces."""
        machine = self.machine
        told_s = self.block_s / machine.claims
        return StageInfo(
            peer=machine.peer,
            span=self.span,
            state=StageState.ONLINE if self.is_serving else StageState.JOINING,
            kv_free_tokens=1 << 20,
            decode_tokens_per_s=1 / (len(self.span) * (told_s + machine.block_row_s)),
            addresses=(),
            version="",
            decode_row_s=len(self.span) * machine.block_row_s,
            uplink_bytes_per_s=0.0
            if machine.uplink_bytes_per_s == inf
            else machine.uplink_bytes_per_s,
            max_blocks=machine.max_blocks,
            block_s=told_s,
            block_row_s=machine.block_row_s,
            next_span=self.next_span,
        )
