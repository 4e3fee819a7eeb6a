"""What the sequences of a batch need not compute, because it has been or is about to be. Pure.

A sequence never takes over its last token: what follows it is wanted, so somebody must compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.protocol.prefixes import MARK_TOKENS, digests

MAX_DIGESTS = 16384
"""Of all sequences of one request, so that its message stays small."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a sequence may begin with."""

    digests: tuple[str, ...] = ()
    """At its marks: a stage that holds what one of them names can go on from there."""
    fork_of: int | None = None
    """Index of a sequence of the same batch that begins alike."""
    fork_tokens: int = 0
    """What they share."""


def beginnings(sequences: Sequence[Sequence[int]], *, forks: bool) -> list[Beginning]:
    """How each sequence of a batch may begin.

    Args:
        sequences: Token ids.
        forks: Whether sequences may take over from one another.
    """
    found = plan_forks(sequences) if forks else [None] * len(sequences)
    room, results = MAX_DIGESTS, []
    for ids, fork in zip(sequences, found, strict=True):
        if fork is not None:
            results.append(Beginning(fork_of=fork[0], fork_tokens=fork[1]))
            continue
        marked = tuple(digests(ids[:-1])[:room])
        room -= len(marked)
        results.append(Beginning(marked))
    return results


def plan_forks(sequences: Sequence[Sequence[int]]) -> list[tuple[int, int] | None]:
    """Let each sequence take over from the one with which it shares most.

    In sorted order that is the neighbour before it. Where an earlier one shares as much, that one is
    taken instead, so that nobody waits for more than it needs.

    Returns:
        For each sequence (index of the other, tokens shared), or None for one that shares less than
        `MARK_TOKENS` with those before it.
    """
    forks: list[tuple[int, int] | None] = [None] * len(sequences)
    order = sorted(range(len(sequences)), key=lambda index: (list(sequences[index]), index))
    arrays = [np.asarray(sequences[index], np.int32) for index in order]
    for place in range(1, len(order)):
        index, source = order[place], order[place - 1]
        tokens = min(_common(arrays[place - 1], arrays[place]), len(arrays[place]) - 1)
        if tokens < MARK_TOKENS:
            continue
        while (above := forks[source]) is not None and above[1] >= tokens:
            source = above[0]
        forks[index] = (source, tokens)
    return forks


def agreed_tokens(beginning: Beginning, num_tokens: int, offers: Sequence[int]) -> int:
    """Where a sequence's first row begins.

    Args:
        beginning: What was asked for.
        num_tokens: Length of the sequence.
        offers: How many tokens each stage of the route can begin with. All must agree, because what
            one of them lacks must pass through those before it.
    """
    tokens = min(offers)
    if beginning.fork_of is not None:  # a stage takes over all of it or nothing
        return beginning.fork_tokens if tokens >= beginning.fork_tokens else 0
    return min(tokens, num_tokens - 1)


def _common(one: npt.NDArray[np.int32], other: npt.NDArray[np.int32]) -> int:
    """Tokens that both begin with."""
    length = min(len(one), len(other))
    differs = np.flatnonzero(one[:length] != other[:length])
    return int(differs[0]) if len(differs) else length
