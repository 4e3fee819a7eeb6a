"""Spans of blocks and routes through them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.ids import PeerId


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Blocks `[start, end)`."""

    start: int
    end: int

    def __len__(self) -> int:
        """Number of blocks."""
        return self.end - self.start

    def covers(self, other: Span) -> bool:
        """Whether all of the other's blocks are among these, and there are any."""
        return self.start <= other.start < other.end <= self.end

    def __str__(self) -> str:
        """As people count: first and last block, inclusive."""
        return f"{self.start}–{self.end - 1}" if len(self) else "none"


@dataclass(frozen=True, slots=True)
class Hop:
    """One stage of a route: the blocks that this peer computes."""

    peer: PeerId
    span: Span


@dataclass(frozen=True, slots=True)
class Route:
    """Stages that together cover every block once, in order."""

    hops: tuple[Hop, ...]

    @property
    def first(self) -> PeerId:
        """The peer that embeds ids."""
        return self.hops[0].peer

    @property
    def last(self) -> PeerId:
        """The peer that holds norm and LM head, and samples."""
        return self.hops[-1].peer


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """What a plan gives one machine."""

    peer: PeerId
    span: Span
    kv_offload_ratio: float
    """α: the share of the cache in RAM."""


@dataclass(frozen=True, slots=True)
class Term:
    """One number of a plan, and where it comes from."""

    what: str
    value: float
    unit: str
    why: str
    """A short formula in words, with the values that went into it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The best pipeline that the planner has found."""

    stages: tuple[PlannedStage, ...]
    batch_size: int
    """B."""
    num_microbatches: int
    """M."""
    codec: bool
    """Whether hidden states are encoded."""
    draft_tree_size: int
    """N draft tokens per row; 0: plain decoding."""
    prune_threshold: float
    """τ; 0: nothing is pruned."""
    step_s: float
    """Time in which every row of the batch gets its next token (or its round's tokens)."""
    tokens_per_s: float
    prefill_s: float
    """Until the whole batch's prompts are computed."""
    bottleneck: str
    """What binds, in words: a stage's compute, a line, the round trip."""
    left_out: tuple[PeerId, ...]
    """Machines that would cost more than they give."""
    terms: tuple[Term, ...] = ()
    sustained_tokens_per_s: float = 0.0
    """With the prompts: of a long job whose rows are replaced as they end, or of an answer alone."""
