"""Pipelined speculation: what chunks bring that do not wait for the verdict on those before them.

While one chunk is verified somewhere in the pipe the client sends the next, on the assumption that
everything is accepted, the token after it included. A refusal makes what is on its way worthless;
nothing of it is committed, so the output stays as it is. A run of chunks ends with the first refusal:
its first answer takes a round, each further one an interval.
"""

from __future__ import annotations

from typing import Final

_SPARE_SHARE: Final = 0.1
"""Of the time until a draft beside a ring must be there: what it shall be too early."""


def answer_tokens(per_place: float, chunk_tokens: int) -> float:
    """What an answer commits on average, the target's own token included.

    Args:
        per_place: α, chance that a drafted token is right, below 1.
        chunk_tokens: Of each chunk, drafted.
    """
    return (1 - per_place**chunk_tokens) / (1 - per_place)


def answer_s(round_s: float, interval_s: float, all_right: float, most_ahead: int) -> float:
    """What passes from one answer to the next on average.

    Args:
        round_s: From the beginning of a draft to its verdict.
        interval_s: Between chunks: the longest of drafting, a stage's pass and a link's transfer.
        all_right: Chance that a chunk, and what is guessed to follow it, is right.
        most_ahead: Chunks on their way at once, at most; the interval cannot be shorter than so
            many fit into a round.
    """
    return (1 - all_right) * round_s + all_right * max(interval_s, round_s / most_ahead)


def levels_in_time(most: int, level_s: float, away_s: float, answer_s: float) -> tuple[int, int]:
    """How far a draft beside a closed ring may look ahead, so that it is there when it is wanted.

    While an answer goes to the client and its draft to the first stage the ring goes on: the draft must
    guess that too, which shall be as little as leaves it a place behind that.

    Args:
        most: Places in a row that it would like to guess.
        level_s: What each takes.
        away_s: Both ways, the ring's own way back apart.
        answer_s: Between two answers of the ring.

    Returns:
        (answers that come meanwhile, places). As many of both: no draft can be in time.
    """
    for meanwhile in range(1, most):
        left_s = (1 - _SPARE_SHARE) * meanwhile * answer_s - away_s
        if left_s > level_s * (meanwhile + 1):
            return meanwhile, most if level_s * most <= left_s else int(left_s / level_s)
    return most, most
