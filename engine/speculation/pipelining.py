"""Pipelined speculation: whether to send the next chunk before the last one's verdict.

While one chunk is verified somewhere in the pipe the client drafts and sends the next, on the
assumption that everything is accepted. A refusal makes what is on its way worthless; nothing of it
is committed, so the output stays as it is.
"""

from __future__ import annotations

import math
from typing import Final

_MARGIN: Final = 1.05


def tokens_per_s(per_place: float, chunk_tokens: int, round_s: float) -> float:
    """Of chunks that wait for each other.

    Args:
        per_place: Chance that a drafted token is right, below 1.
        chunk_tokens: Of each chunk.
        round_s: From the beginning of a draft to its verdict.
    """
    return (1 - per_place ** (chunk_tokens + 1)) / (1 - per_place) / round_s


def pipelined_tokens_per_s(
    per_place: float, chunk_tokens: int, round_s: float, interval_s: float, most_ahead: int
) -> float:
    """Of chunks that do not wait.

    A run of chunks ends with the first refusal and commits 1 / (1 - α) tokens on average, the
    target's own included; it takes a round for its first chunk and an interval for each further one.

    Args:
        per_place: α, chance that a drafted token is right, below 1.
        chunk_tokens: Of each chunk.
        round_s: From the beginning of a draft to its verdict.
        interval_s: Between chunks: the longest of drafting, a stage's pass and a link's transfer.
        most_ahead: Chunks on their way at once, at most; the interval cannot be shorter than so
            many fit into a round.
    """
    interval_s = max(interval_s, round_s / most_ahead)
    all_right = per_place**chunk_tokens
    further = all_right / (1 - all_right)
    return 1 / (1 - per_place) / (round_s + further * interval_s)


def chunks_ahead(
    per_place: float,
    chunk_tokens: int,
    round_s: float,
    interval_s: float,
    idle_share: float,
    most_ahead: int,
) -> int:
    """How many chunks may be on their way at once; 1: wait for each verdict.

    Chunks that turn out worthless cost nobody anything only where stages would have been idle, so
    no more of them are sent than fit into what is idle.

    Args:
        per_place: Chance that a drafted token is right, below 1.
        chunk_tokens: Of each chunk.
        round_s: From the beginning of a draft to its verdict.
        interval_s: Between chunks: the longest of drafting, a stage's pass and a link's transfer.
        idle_share: Of the busiest stage's time that nobody else uses.
        most_ahead: What stages take.
    """
    if interval_s <= 0:
        return 1
    fit = math.ceil(round_s / interval_s)
    ahead = max(1, min(most_ahead, fit, math.floor(1 + idle_share * (fit - 1))))
    if ahead == 1:
        return 1
    waiting = tokens_per_s(per_place, chunk_tokens, round_s)
    flowing = pipelined_tokens_per_s(per_place, chunk_tokens, round_s, interval_s, ahead)
    return ahead if flowing > _MARGIN * waiting else 1
