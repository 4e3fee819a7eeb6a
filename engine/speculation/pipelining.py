"""Pipelined speculation: what chunks bring that do not wait for the verdict on those before them.

While one chunk is verified somewhere in the pipe the client sends the next, on the assumption that
everything is accepted, the token after it included. A refusal makes what is on its way worthless;
nothing of it is committed, so the output stays as it is. A run of chunks ends with the first refusal:
its first answer takes a round, each further one an interval.
"""

from __future__ import annotations


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
