"""What clients have measured of stages, which counts more than what these say of themselves; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from engine.core.ids import PeerId
from engine.core.snapshot import StageInfo, SwarmSnapshot

Observations: TypeAlias = Mapping[PeerId, float]
"""Peer → time of one block in a decode pass of one row, in seconds."""

NEWEST: Final = 0.3
"""Weight of a new measurement beside all earlier ones."""


def learned(seen: Observations, measured: Observations) -> Observations:
    """What is known after further measurements.

    Args:
        seen: Known so far.
        measured: Of stages that have just been used.
    """
    return {
        **seen,
        **{
            peer: block_s if peer not in seen else seen[peer] + NEWEST * (block_s - seen[peer])
            for peer, block_s in measured.items()
        },
    }


def believe(snapshot: SwarmSnapshot, seen: Observations) -> SwarmSnapshot:
    """The swarm with measured speeds in the place of announced ones, for routing and placement.

    Args:
        snapshot: As announced.
        seen: What has been measured.
    """
    if not seen:
        return snapshot
    return replace(snapshot, stages=tuple(_corrected(stage, seen) for stage in snapshot.stages))


def _corrected(stage: StageInfo, seen: Observations) -> StageInfo:
    block_s = seen.get(stage.peer)
    if block_s is None or block_s <= 0 or not len(stage.span):
        return stage
    said_s = stage.block_s + stage.block_row_s
    slower = block_s / said_s if said_s > 0 else 1.0
    return replace(
        stage,
        decode_tokens_per_s=1 / (block_s * len(stage.span)),
        decode_row_s=stage.decode_row_s * slower,
        block_s=block_s if said_s <= 0 else stage.block_s * slower,
        block_row_s=stage.block_row_s * slower,
    )
