"""How much room for blocks this computer and those that are known have, for the list of models."""

from __future__ import annotations

from engine.config import StageConfig
from engine.http.catalogue_routes import Rooms
from engine.node.compute import MEMORY_SHARE, Compute
from engine.node.membership import Membership
from engine.protocol.frames import ELEMENT_BYTES


def rooms(membership: Membership, compute: Compute, stage: StageConfig) -> Rooms:
    """As far as it is known: of others, as many bytes as the blocks that they say fit there.

    They count blocks of the swarm's model, and no more than it has, so they may have more room.
    """
    element_bytes = ELEMENT_BYTES[compute.dtype]
    others: list[int] = []
    serving = membership.serving
    if serving is not None and membership.invite is not None:
        block_bytes = serving.files.spec.block_parameters * element_bytes
        snapshot = serving.directory.snapshot()
        others = [
            max(one.max_blocks, len(one.span)) * block_bytes
            for one in snapshot.stages
            if one.peer != serving.client.local_peer
        ]
    return Rooms(
        source=membership.source,
        is_solo=membership.invite is None,
        element_bytes=element_bytes,
        rooms_bytes=(_own_room_bytes(compute, stage), *others),
    )


def _own_room_bytes(compute: Compute, stage: StageConfig) -> int:
    if not stage.enabled:
        return 0
    room = int(compute.memory_bytes * MEMORY_SHARE)
    if compute.room_bytes is not None:
        room = min(room, compute.room_bytes)
    return max(room - stage.kv_budget_bytes, 0)
