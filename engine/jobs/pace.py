"""How fast rows are answered, and how long the rest will take. Pure."""

from __future__ import annotations

import math
from collections import deque

RATE_WINDOW_S = 10.0
_KEPT_ENDS = 256
_LEAST_ENDS = 5
"""Fewer rows say nothing about the rest."""


class Pace:
    """Of one job, since it last began to run."""

    def __init__(self) -> None:
        self._tokens: deque[tuple[float, int]] = deque()
        self._ends_s: deque[float] = deque(maxlen=_KEPT_ENDS)

    def token(self, now_s: float, count: int = 1) -> None:
        """Tokens came."""
        # One entry for a tenth of a second: many rows at once make thousands of tokens.
        if self._tokens and now_s - self._tokens[-1][0] < 0.1:
            then_s, before = self._tokens.pop()
            self._tokens.append((then_s, before + count))
        else:
            self._tokens.append((now_s, count))
        self._forget(now_s)

    def row_ended(self, now_s: float) -> None:
        """A row has its answer."""
        self._ends_s.append(now_s)

    def tokens_per_s(self, now_s: float) -> float:
        """Over the last seconds."""
        self._forget(now_s)
        if not self._tokens:
            return 0.0
        span_s = max(1.0, min(RATE_WINDOW_S, now_s - self._tokens[0][0]))
        return sum(count for _, count in self._tokens) / span_s

    def eta_s(self, left_rows: int) -> tuple[float, float] | None:
        """Least and most seconds for the rest, about 19 times in 20; None while unknown.

        Rows end at random intervals, of which the last few hundred are known: the mean of the rest
        is as uncertain as theirs, and the rest's sum scatters besides.
        """
        count = len(self._ends_s) - 1
        if count < _LEAST_ENDS or left_rows <= 0:
            return None
        gaps = [b - a for a, b in zip(self._ends_s, list(self._ends_s)[1:], strict=False)]
        mean = sum(gaps) / count
        deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (count - 1))
        spread = 2 * deviation * math.sqrt(left_rows**2 / count + left_rows)
        return max(0.0, left_rows * mean - spread), left_rows * mean + spread

    def _forget(self, now_s: float) -> None:
        while self._tokens and now_s - self._tokens[0][0] > RATE_WINDOW_S:
            self._tokens.popleft()


class Hold:
    """How long no row is asked after one has failed: a little longer each time.

    Args:
        least_s: After the first failure.
        most_s: However many there are.
    """

    def __init__(self, least_s: float, most_s: float) -> None:
        self._least_s = least_s
        self._most_s = most_s
        self._length_s = 0.0
        self._until_s = -math.inf
        self._had_way = True
        self.reason = ""
        """Why, as a sentence; empty while all goes well."""

    def got_on(self) -> None:
        """A row was answered."""
        self._length_s, self._until_s, self.reason = 0.0, -math.inf, ""

    def failed(self, reason: str, now_s: float, *, has_way: bool) -> None:
        """A row was not answered; `has_way` tells whether it found stages for the whole model."""
        self.reason, self._had_way = reason, has_way
        if now_s < self._until_s:
            return  # one trouble, which many rows have met
        self._length_s = min(self._most_s, max(self._least_s, 2 * self._length_s))
        self._until_s = now_s + self._length_s

    def holds(self, now_s: float, *, has_way: bool) -> bool:
        """Whether to wait still; not when the way is back that was missing."""
        return now_s < self._until_s and not (has_way and not self._had_way)


class Width:
    """How many rows are asked at once: more while all goes well, half when there was no room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows = min(4, most)

    def row_ended(self) -> None:
        """A row was answered: there may be room for one more."""
        self.rows = min(self._most, self.rows + 1)

    def no_room(self) -> None:
        """A row found no room."""
        self.rows = max(1, self.rows // 2)

    def may_start(self, running: int, row_tokens: int, free_tokens: int | None) -> bool:
        """Whether one more row may be asked.

        Args:
            running: Rows that are being answered.
            row_tokens: Room that it will need.
            free_tokens: Free along the way it would take; None: there is no way.
        """
        if running == 0:
            return True  # only trying tells what is wrong
        if free_tokens is None or running >= self.rows:
            return False
        # Whoever chats meanwhile shall find room too.
        return free_tokens >= 2 * row_tokens
