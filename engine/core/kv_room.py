"""How much room a sequence's keys and values take, and in which tier: agent and worker must agree."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

KvDtype = Literal["auto", "8bit"]
"""`auto`: keys and values in the type of the arithmetic."""
PAGE_TOKENS = 32
"""Where reserved memory is taken memory, room is given out in so many tokens."""
_SCALE_BYTES = 2
"""Of each token's factor per head, in 8-bit caches."""


def kv_head_bytes(head_dim: int, element_bytes: int, kv_dtype: KvDtype) -> int:
    """What a token's key or value in one head takes; `element_bytes` is of the arithmetic."""
    return head_dim + _SCALE_BYTES if kv_dtype == "8bit" else head_dim * element_bytes


class KvRoom(NamedTuple):
    """Tokens, or bytes, in each tier."""

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
