"""What a client expects of a sequence whose ring is closed, and the rows that a first stage makes of it. Pure.

The client hears of a token when the ring has it already. So it guesses that one and what follows, and
nobody waits for it: of what is here when the next token arrives the first stage sends along what goes on
from it, as a draft like any other. What comes too late or says something else costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from engine.speculation.tree import EMPTY, TokenTree

_REMEMBERED: Final = 64
"""Newest tokens: what was drafted before they were known may still reach beyond them."""


class Expectation:
    """Of one session."""

    def __init__(self) -> None:
        self._tree = EMPTY
        self._position = 0
        """What its first level guesses."""
        self._newest: deque[int] = deque(maxlen=_REMEMBERED)
        self._end = 0
        """The place behind the newest one."""

    def take(self, position: int, tree: TokenTree) -> None:
        """Expect something else from now on: `tree`, whose first level is at `position`."""
        self._position, self._tree = position, tree
        self._follow()

    def beyond(self, position: int, ids: Sequence[int]) -> TokenTree:
        """What is expected behind new tokens, of which the first is at `position`; often nothing."""
        if position != self._end:  # not all tokens pass here
            self._newest.clear()
        self._newest.extend(ids)
        self._end = position + len(ids)
        self._follow()
        return self._tree if self._position == self._end else EMPTY

    def _follow(self) -> None:
        """Leave of the tree what goes on from the newest tokens."""
        late = self._end - self._position
        if late <= 0:
            return
        known = late <= len(self._newest)
        news = list(self._newest)[-late:]
        self._tree = self._tree.beyond(news) if known else EMPTY
        self._position = self._end
