"""How far a draft's own probabilities can be trusted, learned from what was committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.speculation.tree import ROOT, TokenTree

_PRIOR_ROUNDS: Final = 4.0
"""Rounds in which the draft is taken to have been right as often as it says."""
_KEPT_SHARE: Final = 0.95
"""What a round leaves of the memory of those before it."""
_BOUNDS: Final = (0.2, 1.5)


class Trust:
    """Right guesses over promised ones, at the first place of each tree."""

    def __init__(self) -> None:
        self._right = self._promised = _PRIOR_ROUNDS
        self._expected: tuple[frozenset[int], float, int] | None = None
        """Ids at the first place of the last tree, their chance together, and the place."""

    def scaled(self, chance: float) -> float:
        """What the draft's probability of a token is worth; below 1."""
        return min(0.99, self._factor * chance)

    @property
    def _factor(self) -> float:
        low, high = _BOUNDS
        return min(high, max(low, self._right / self._promised))

    def expect(self, tree: TokenTree, values: Mapping[int, float], length: int) -> None:
        """Note what was proposed after so many committed tokens, and what it was worth by `scaled`."""
        first = [id_ for id_, p in zip(tree.ids, tree.parents, strict=True) if p == ROOT]
        chance = sum(values[id_] for id_ in first) / self._factor
        self._expected = (frozenset(first), chance, length) if first else None

    def forget(self) -> None:
        """Nothing will be learnt of the last tree."""
        self._expected = None

    def learn(self, ids: Sequence[int]) -> None:
        """See what became of it."""
        if self._expected is None:
            return
        proposed, chance, length = self._expected
        if len(ids) > length:
            self._right = _KEPT_SHARE * self._right + (ids[length] in proposed)
            self._promised = _KEPT_SHARE * self._promised + chance
            self._expected = None
