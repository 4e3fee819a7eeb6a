"""Drafting by looking up: what followed the last few tokens when they came before.

Costs nothing to speak of, and is right for long stretches where an answer quotes its prompt.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final

from engine.speculation.tree import EMPTY, ROOT, TokenTree

_MAX_MATCH: Final = 3
_KEPT_PLACES: Final = 8
"""Of each run of tokens, the newest places; older ones say little about what comes now."""


class PromptLookup:
    """Proposes from one sequence's own past; see `engine.speculation.tree.Draft`.

    Args:
        min_match: The fewest last tokens that must have come before, 1 to 3.
        max_branches: How many earlier places may be followed; 1 gives chains.
    """

    def __init__(self, *, min_match: int = 1, max_branches: int = 1) -> None:
        self._lengths = range(_MAX_MATCH, min_match - 1, -1)
        self._max_branches = max_branches
        self._ids: list[int] = []
        self._places: defaultdict[tuple[int, ...], deque[int]] = defaultdict(
            lambda: deque(maxlen=_KEPT_PLACES)
        )
        """Of each run of 1 to 3 tokens: where what followed it begins, oldest first."""

    def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
        """See `Draft`."""
        self._take(ids)
        starts = self._starts() if num_tokens > 0 else []
        if not starts:
            return EMPTY
        if len(starts) == 1:
            return TokenTree.chain(self._following(starts[0], num_tokens))
        return self._tree(starts, num_tokens)

    def _take(self, ids: Sequence[int]) -> None:
        for position in range(len(self._ids), len(ids)):
            # A run becomes known when something follows it, so none finds itself.
            for length in range(1, min(_MAX_MATCH, position) + 1):
                self._places[tuple(self._ids[position - length :])].append(position)
            self._ids.append(ids[position])

    def _starts(self) -> list[int]:
        """Places to go on from, longest match and newest first, each with another next token."""
        starts: list[int] = []
        next_ids: set[int] = set()
        for length in self._lengths:
            if length > len(self._ids):
                continue
            for place in reversed(self._places.get(tuple(self._ids[-length:]), ())):
                if self._ids[place] not in next_ids:
                    next_ids.add(self._ids[place])
                    starts.append(place)
                    if len(starts) == self._max_branches:
                        return starts
        return starts

    def _following(self, start: int, num_tokens: int) -> list[int]:
        """What came from `start` on; at the end of the text it repeats, as loops do."""
        period = len(self._ids) - start
        return [self._ids[start + i % period] for i in range(num_tokens)]

    def _tree(self, starts: Sequence[int], num_tokens: int) -> TokenTree:
        """One chain for each place; the first gets half of the nodes, the next half of the rest."""
        ids: list[int] = []
        parents: list[int] = []
        for i, start in enumerate(starts):
            rest = num_tokens - len(ids)
            share = rest if i == len(starts) - 1 else -(-rest // 2)
            parent = ROOT
            for id_ in self._following(start, share):
                ids.append(id_)
                parents.append(parent)
                parent = len(ids) - 1
        return TokenTree(tuple(ids), tuple(parents))
