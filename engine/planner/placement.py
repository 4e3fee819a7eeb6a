"""Which blocks a joining node should hold."""

from __future__ import annotations

import itertools

from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.planner.announced import MIN_BLOCK_S
from engine.planner.petals import Server, block_rates, least_served
from engine.planner.routing import UNKNOWN_BLOCK_S


def choose_span(snapshot: SwarmSnapshot, max_blocks: int) -> Span:
    """Pick the contiguous blocks that the swarm serves worst.

    The joining rule of [PT] §3.3 and App. D: of all intervals of `max_blocks` blocks take the one
    whose blocks' total throughputs, sorted ascending, are lexicographically least; ties go to the
    first. Deterministic, so equal views give equal answers.

    Args:
        snapshot: The swarm without ourselves.
        max_blocks: Blocks that fit here, at least 1.

    Raises:
        ValueError: `max_blocks` is below 1.
    """
    if max_blocks < 1:
        raise ValueError(f"max_blocks must be at least 1, not {max_blocks}")
    length = min(max_blocks, snapshot.num_blocks)
    start = least_served(block_rates(snapshot.num_blocks, servers(snapshot)), length)
    return Span(start, start + length)


def servers(snapshot: SwarmSnapshot) -> tuple[Server, ...]:
    """Those that serve or soon will, as [PT]'s rules see them."""
    return tuple(
        Server(stage.peer, stage.span, tokens_per_s(stage, len(stage.span)))
        for stage in snapshot.stages
        if stage.state in (StageState.ONLINE, StageState.JOINING)
    )


def tokens_per_s(stage: StageInfo, length: int) -> float:
    """What a stage would give each of `length` blocks, one session at a time.

    Args:
        stage: As it announces itself.
        length: At least 1.
    """
    block_s = stage.block_s + stage.block_row_s
    if block_s <= 0 and stage.decode_tokens_per_s > 0:
        block_s = 1 / (stage.decode_tokens_per_s * max(1, len(stage.span)))
    return 1 / (length * (max(block_s, MIN_BLOCK_S) if block_s > 0 else UNKNOWN_BLOCK_S))


def even_spans(num_blocks: int, num_stages: int) -> list[Span]:
    """Cut `num_blocks` into `num_stages` runs whose lengths differ by at most one.

    Raises:
        ValueError: There are more stages than blocks, or fewer than one.
    """
    if not 1 <= num_stages <= num_blocks:
        raise ValueError(f"{num_blocks} blocks cannot be cut into {num_stages} stages")
    cuts = [round(num_blocks * stage / num_stages) for stage in range(num_stages + 1)]
    return [Span(start, end) for start, end in itertools.pairwise(cuts)]
