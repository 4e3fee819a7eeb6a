"""What the announcements say of the swarm, as the planner wants it; pure.

Everyone who sees the same announcements makes the same profiles of them, and so the same plan. An
announcement is a summary: the time of a block and of a row more. What it leaves out is filled in
from these, so profiles made here compare nodes; a node's own profile says more.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from engine.core.plans import Span
from engine.core.profiles import BlockTimes, LinearTime, ModelSize, NetworkMatrix, NodeProfile
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.planner.costs import PREFILL_CHUNK_TOKENS, workspace_bytes
from engine.planner.distances import Distances
from engine.planner.routing import UNKNOWN_BLOCK_S

MIN_BLOCK_S = 1e-6
"""No machine is faster, whatever it announces."""
USUAL_CONTEXT_TOKENS = 512
"""Cached tokens that a row attends to, where one number must do for all."""


def announced(
    snapshot: SwarmSnapshot, size: ModelSize, kv_tokens: int = 0
) -> tuple[tuple[NodeProfile, ...], NetworkMatrix]:
    """Profiles of the nodes that hold blocks or soon will, and the lines between them.

    Args:
        snapshot: The swarm.
        size: The model.
        kv_tokens: KV room that the plan will promise at every stage: a node takes as many blocks
            as it says, whatever the room.

    Returns:
        Both by peer id.
    """
    stages = [
        stage
        for stage in sorted(snapshot.stages, key=lambda stage: stage.peer)
        if stage.state in (StageState.ONLINE, StageState.JOINING)
    ]
    return tuple(profile(stage, size, kv_tokens) for stage in stages), _network(snapshot, stages)


def profile(stage: StageInfo, size: ModelSize, kv_tokens: int = 0) -> NodeProfile:
    """What one announcement says of its machine.

    Args:
        stage: The announcement.
        size: The model.
        kv_tokens: See `announced`.
    """
    base_s, row_s = stage.block_s, stage.block_row_s
    if not base_s + row_s:
        base_s = UNKNOWN_BLOCK_S
    base_s = max(base_s, MIN_BLOCK_S - row_s)
    max_blocks = stage.max_blocks or len(stage.span)
    head = size.head_bytes / size.block_bytes
    return NodeProfile(
        peer=stage.peer,
        block=BlockTimes(
            mlp=LinearTime(base_s, row_s),
            attention=LinearTime(0.0, 0.0),
            ram_attention=None,
            prefill_row_s=row_s,
        ),
        head=LinearTime(head * base_s, head * row_s),
        pass_overhead_s=0.0,
        memory_bytes=size.embedding_bytes
        + size.head_bytes
        + workspace_bytes(size, PREFILL_CHUNK_TOKENS)
        + max_blocks * (size.block_bytes + kv_tokens * size.kv_bytes_per_token),
        ram_bytes=0,
        uplink_bytes_per_s=stage.uplink_bytes_per_s or inf,
        downlink_bytes_per_s=inf,
        encode_bytes_per_s=0.0,
        decode_bytes_per_s=0.0,
    )


def block_times_of(base_s: float, row_s: float, span: Span, size: ModelSize) -> tuple[float, float]:
    """(`block_s`, `block_row_s`) of a stage by its pace; the head's part of the last one taken off.

    Args:
        base_s: A decode pass through the whole span, however few rows it has.
        row_s: What each row adds.
        span: What the stage holds.
        size: The model.
    """
    parts = block_equivalents(span, size)
    return base_s / parts, row_s / parts


def summary(profile: NodeProfile, span_length: int) -> tuple[float, float]:
    """(`block_s`, `block_row_s`) of a machine that has been measured; see `profile` for the reverse.

    Args:
        profile: The machine.
        span_length: Blocks that share a pass's overhead.
    """
    mlp, attention = profile.block.mlp, profile.block.attention
    return (
        mlp.base_s + attention.base_s + profile.pass_overhead_s / span_length,
        mlp.unit_s + attention.unit_s * USUAL_CONTEXT_TOKENS,
    )


def block_equivalents(span: Span, size: ModelSize) -> float:
    """Blocks that take as long as these, with the head where it belongs to them."""
    head = size.head_bytes / size.block_bytes if span.end == size.num_blocks else 0.0
    return len(span) + head


def as_intended(snapshot: SwarmSnapshot) -> SwarmSnapshot:
    """The swarm as it will be: stages that are about to move have joined where they go."""
    return replace(
        snapshot,
        stages=tuple(
            stage
            if stage.next_span is None
            else replace(stage, span=stage.next_span, state=StageState.JOINING, next_span=None)
            for stage in snapshot.stages
        ),
    )


def _network(snapshot: SwarmSnapshot, stages: list[StageInfo]) -> NetworkMatrix:
    peers = tuple(stage.peer for stage in stages)
    distances = Distances(snapshot, {})
    return NetworkMatrix(
        peers=peers,
        delay_s=tuple(
            tuple(0.0 if one == other else distances.to(one, other) for other in peers)
            for one in peers
        ),
        bytes_per_s=tuple(tuple(inf for _ in peers) for _ in peers),
    )
