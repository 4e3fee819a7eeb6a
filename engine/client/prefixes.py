"""What new sequences need not compute, because it has been or is about to be. Pure.

A sequence never takes over its last token: what follows it is wanted, so somebody must compute it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.ids import SessionId
from engine.protocol.prefixes import MARK_TOKENS, digests

MAX_DIGESTS = 16384
"""Of all sequences of one request, so that its message stays small."""
_WORTH_ASKING_TOKENS = 2 * MARK_TOKENS
"""Where two sequences that run together differ in less, nothing is asked of what earlier ones left."""

Ids = Sequence[int]
Sequences = Sequence[tuple[SessionId, Ids]]


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a sequence may begin with: a stage takes what is longest."""

    digests: tuple[str, ...] = ()
    """At its marks: what an earlier sequence has left behind is found by them."""
    fork_of: SessionId | None = None
    """A sequence that begins alike and runs now, or soon will."""
    fork_tokens: int = 0
    """What both begin with."""

    def agreed_tokens(self, offers: Sequence[int]) -> int:
        """Where the sequence's first row begins.

        Args:
            offers: How many tokens each stage of the route can begin with. What one of them lacks must
                pass through all before it, so the least counts.
        """
        tokens = min(offers)
        # Below that a stage that waits for the other sequence would have nothing at all.
        return tokens if tokens >= self.fork_tokens else 0


def beginnings(new: Sequences, live: Sequences) -> list[Beginning]:
    """How each of the new sequences may begin.

    Args:
        new: Opened together.
        live: Open along the same route.
    """
    forks = plan_forks(new, live)
    room, found = MAX_DIGESTS, []
    for (_, ids), fork in zip(new, forks, strict=True):
        asked: tuple[str, ...] = ()
        if fork is None or len(ids) - 1 - fork[1] >= _WORTH_ASKING_TOKENS:
            asked = tuple(digests(ids[:-1])[:room])
            room -= len(asked)
        found.append(Beginning(asked) if fork is None else Beginning(asked, *fork))
    return found


def plan_forks(new: Sequences, live: Sequences) -> list[tuple[SessionId, int] | None]:
    """Let each new sequence take over from the one with which it shares most.

    In sorted order that is a neighbour. Where one that is live, or earlier in that order, shares as
    much, that one is taken, so that nobody waits for more than it needs.

    Returns:
        For each new one (the other, tokens shared); None where that is less than `MARK_TOKENS`.
    """
    running = sorted((list(ids), session) for session, ids in live)
    order = sorted(range(len(new)), key=lambda index: (list(new[index][1]), index))
    sources: list[int | None] = [None] * len(new)
    """Index of the new one that each takes over from."""
    shared = [0] * len(new)
    forks: list[tuple[SessionId, int] | None] = [None] * len(new)
    for place, index in enumerate(order):
        ids = new[index][1]
        most, fork = MARK_TOKENS - 1, None
        at = bisect(running, (list(ids), SessionId(0)))
        for other, session in running[max(0, at - 1) : at + 1]:
            if (tokens := _common(ids, other)) > most:
                most, fork = tokens, (session, tokens)
        if place and (tokens := _common(ids, new[order[place - 1]][1])) > most:
            source = order[place - 1]
            while (above := sources[source]) is not None and shared[source] >= tokens:
                source = above  # which shares as much
            most, sources[index], fork = tokens, source, (new[source][0], tokens)
        shared[index], forks[index] = most, fork
    return forks


def _common(one: Ids, other: Ids) -> int:
    """Tokens that `one` can take over from `other`: both begin with them."""
    length = min(len(one) - 1, len(other))
    if length <= 0:
        return 0
    differs = np.flatnonzero(np.asarray(one[:length]) != np.asarray(other[:length]))
    return int(differs[0]) if len(differs) else length
