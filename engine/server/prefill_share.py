"""How much prefill may ride along while others decode, so that their tokens come hardly later. Pure.

What a chat feels is the time from its row's arrival to its departure. That time is compared with
what it is when nothing prefills, and chunks of prefill shrink or grow until the two differ by a
fixed factor: a rule that needs to know neither the machine nor who else computes on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TARGET_SLOWDOWN = 1.5
"""How much longer a decode step may take at a stage beside prefill than without."""
MIN_CHUNK_TOKENS = 16
"""Smaller chunks read all the weights for next to nothing; they are saved up instead."""
CALM_AFTER_S = 0.5
"""So long after the last prefill here, steps show how fast the stage is without."""
IDLE_S = 0.25
"""When no row has decoded for so long, they are busy elsewhere: chunks need not be saved up."""
STALLED_S = 5.0
"""When no row has decoded for so long, prefill has the stage to itself. Much longer than a full pass:
else one slow pass would be followed by another at the next stage, and so on round the ring."""
_GAIN = 0.1
_MAX_SLOWDOWN = 10.0
_SMOOTHING = 0.1


@dataclass(slots=True)
class PrefillShare:
    """Saves up tokens of prefill, a chunk per decode step."""

    max_tokens: int
    """The most that one pass may take."""
    chunk_tokens: float = MIN_CHUNK_TOKENS
    """Granted with each decode step."""
    _saved_tokens: float = 0.0
    _calm_s_per_cost: float = 0.0
    """Time at the stage without prefill, over what the pass costs by itself."""
    _decoded_at_s: float = float("-inf")
    _prefilled_at_s: float = float("-inf")

    def decoded(self, now_s: float, *, local_s: float, cost_s: float) -> None:
        """Note a decode step.

        Args:
            now_s: When it ended.
            local_s: From its rows' arrival to their departure.
            cost_s: What a pass of so many rows takes when nothing disturbs it.
        """
        self._decoded_at_s = now_s
        # What nobody wanted is not saved up, or a prompt would begin with a stall.
        most = self.chunk_tokens + MIN_CHUNK_TOKENS
        self._saved_tokens = min(self._saved_tokens + self.chunk_tokens, most)
        if cost_s <= 0:
            return
        if self.is_calm(now_s):
            calm = local_s / cost_s
            old = self._calm_s_per_cost or calm
            self._calm_s_per_cost = old + _SMOOTHING * (calm - old)
        elif self._calm_s_per_cost:
            slowdown = min(local_s / cost_s / self._calm_s_per_cost, _MAX_SLOWDOWN)
            # In the long run the mean slowdown is the target, however single steps differ.
            chunk_tokens = self.chunk_tokens * math.exp(_GAIN * (TARGET_SLOWDOWN - slowdown))
            self.chunk_tokens = min(max(1.0, chunk_tokens), float(self.max_tokens))

    def is_calm(self, now_s: float) -> bool:
        """Whether nothing has prefilled here for a while."""
        return now_s - self._prefilled_at_s > CALM_AFTER_S

    def prefilled(self, now_s: float, tokens: int) -> None:
        """Note a pass with so many tokens of prefill."""
        self._prefilled_at_s = now_s
        self._saved_tokens = max(0.0, self._saved_tokens - tokens)

    def tokens(self, now_s: float, *, others_decode: bool) -> int:
        """Prefill that the next pass may take; 0 when it must wait."""
        since_decoded_s = now_s - self._decoded_at_s
        if not others_decode or since_decoded_s > STALLED_S:
            return self.max_tokens
        if since_decoded_s > IDLE_S:
            return max(MIN_CHUNK_TOKENS, int(self.chunk_tokens))
        if self._saved_tokens < MIN_CHUNK_TOKENS:
            return 0
        return min(self.max_tokens, int(self._saved_tokens))
