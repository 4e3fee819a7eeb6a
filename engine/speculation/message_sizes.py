"""Bytes that a round of speculation takes on the client's link, by mode ([DC], table of modes).

Payloads alone; frames add their own. Hidden states between stages are no part of it.
"""

from __future__ import annotations

from typing import Final

from engine.core.generation import DraftMode

TOKEN_BYTES: Final = 4
PROBABILITY_BYTES: Final = 2
COUNT_BYTES: Final = 4


def up_bytes(mode: DraftMode, num_tokens: int, vocab_size: int) -> int:
    """From the client with a chain of γ = `num_tokens` tokens."""
    match mode:
        case DraftMode.SHARED:
            return num_tokens * TOKEN_BYTES
        case DraftMode.DSSD | DraftMode.DISCO:
            return num_tokens * (TOKEN_BYTES + PROBABILITY_BYTES)
        case DraftMode.DSD:
            return num_tokens * (TOKEN_BYTES + vocab_size * PROBABILITY_BYTES)


def down_bytes(mode: DraftMode, vocab_size: int, *, rejected: bool) -> int:
    """To the client: how many were accepted, and the token that follows, or what it is drawn from.

    `rejected`: not all drafted tokens were accepted.
    """
    if mode is DraftMode.DSSD and rejected:
        return COUNT_BYTES + vocab_size * PROBABILITY_BYTES
    return COUNT_BYTES + TOKEN_BYTES


def disco_pays_below_bytes_per_s(vocab_size: int, replica_s: float) -> float:
    """BW* of [DC]: on slower downlinks a replica's pass is shorter than a distribution's way.

    Args:
        vocab_size: V.
        replica_s: Time of one pass of the last stage's replica.
    """
    return vocab_size * PROBABILITY_BYTES / replica_s
