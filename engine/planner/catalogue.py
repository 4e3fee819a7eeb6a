"""Whether a model fits on computers of which only the room for blocks is known. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def missing_bytes(
    rooms_bytes: Sequence[int], num_blocks: int, block_bytes: int, ends_bytes: int
) -> int:
    """How much more room there would have to be; 0: the model fits.

    A block lies on one computer. The ends, embedding and head, are taken from the roomiest one,
    which is where a plan would put the first and the last stage.

    Args:
        rooms_bytes: Room for blocks on each computer.
        num_blocks: Of the model.
        block_bytes: Weights of one block, in the precision that is used.
        ends_bytes: Embedding and head.
    """
    rooms = sorted(rooms_bytes, reverse=True) or [0]
    rooms[0] -= ends_bytes
    short_of_ends = max(-rooms[0], 0)
    fitting = sum(max(room, 0) // block_bytes for room in rooms)
    return max(num_blocks - fitting, 0) * block_bytes + short_of_ends
