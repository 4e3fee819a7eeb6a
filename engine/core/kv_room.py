"""How much room a sequence's keys and values take, and in which tier: agent and worker must agree."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

KvDtype = Literal["auto", "8bit"]
"""`auto`: keys and values in the type of the arithmetic."""
SCALE_BYTES = 2
"""Of each token's factor per head, in 8-bit caches."""


class KvRoom(NamedTuple):
    """Tokens (or, multiplied, bytes) in each tier."""

    device: int
    """Where the blocks compute; the newest positions."""
    ram: int
    """In main memory; the oldest positions, which the CPU attends to."""


def kv_room(capacity_tokens: int, kv_offload: float) -> KvRoom:
    """Divide a sequence's room: the first ⌊α · capacity⌋ positions lie in RAM, so nothing ever moves.

    Args:
        capacity_tokens: Prompt and answer.
        kv_offload: α, 0 to 1.
    """
    ram = min(capacity_tokens, math.floor(kv_offload * capacity_tokens))
    return KvRoom(capacity_tokens - ram, ram)
