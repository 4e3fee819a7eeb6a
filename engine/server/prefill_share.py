"""How much prefill may ride along while others decode, so that their tokens come hardly later. Pure.

Rows that decode are at another stage most of the time, and prefill that is done before they are back
costs nobody anything. Beyond that: what a chat feels is the time from its row's arrival to its
departure. That time is compared with what it is when nothing prefills, and the time that prefill
gets shrinks or grows until the two differ by a fixed factor: a rule that needs to know neither the
machine nor who else computes on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TARGET_SLOWDOWN = 1.4
"""How much longer a decode step may take at a stage beside prefill than without."""
USUAL_CHUNK_TOKENS = 16
"""Smaller chunks are put off, unless they take as long as what must be computed beside them: a decode
step with which they ride along, or reading all the weights for them alone."""
CALM_AFTER_S = 0.5
"""So long after the last prefill here, steps show how fast the stage is without."""
IDLE_S = 0.25
"""When no row has decoded for so long, they are busy elsewhere: prefill need not wait for them."""
MAX_PASS_S = 0.1
"""What a chunk may take at most. Well below `IDLE_S`, else one slow pass would bring on the next at
another stage, which nobody reaches meanwhile, and so on round the ring."""
MAX_PASS_ALONE_S = 0.5
"""What a pass may take while nobody decodes: somebody may come who then waits for its end."""
_GAIN = 0.1
_MAX_SLOWDOWN = 4.0
_TINY_S = 1e-6
_MIN_SHARE = 0.25
"""However slow others are: somebody waits for the prompt, too."""
_SMOOTHING = 0.1
_GAP_SMOOTHING_UP, _GAP_SMOOTHING_DOWN = 0.02, 0.2
"""So that most steps come later than expected."""
_TOKEN_SMOOTHING = 0.3
"""A token's time grows with the prompt, so it is followed quickly."""


@dataclass(slots=True)
class PrefillShare:
    """Saves up time for prefill, a little per decode step."""

    max_tokens: int
    """The most that one pass may take."""
    _share: float = TARGET_SLOWDOWN - 1
    """Of a calm decode step's time, granted with each."""
    _saved_s: float = 0.0
    _step_s: float = 0.0
    """The last decode step, as it would have been without prefill."""
    _token_s: float = 0.0
    """What each further token of prefill takes now; 0: not known."""
    _gap_s: float = 0.0
    """From a decode step's end to the next one's arrival, if that comes soon."""
    _calm_s_per_cost: float = 0.0
    """Time at the stage without prefill, over what the pass costs by itself."""
    _decoded_at_s: float = float("-inf")
    _prefilled_at_s: float = float("-inf")

    def decoded(self, now_s: float, *, local_s: float, cost_s: float) -> None:
        """Note a decode step.

        Args:
            now_s: When it ended.
            local_s: From its rows' arrival to their departure.
            cost_s: What a pass of so many rows takes when nothing disturbs it; 0: not known.
        """
        gap_s = min(max(0.0, now_s - local_s - self._decoded_at_s), MAX_PASS_S)
        smoothing = _GAP_SMOOTHING_UP if gap_s > self._gap_s else _GAP_SMOOTHING_DOWN
        self._gap_s += smoothing * (gap_s - self._gap_s)
        self._decoded_at_s = now_s
        if cost_s > 0 and self.is_calm(now_s):
            calm = local_s / cost_s
            old = self._calm_s_per_cost or calm
            self._calm_s_per_cost = old + _SMOOTHING * (calm - old)
        elif cost_s > 0 and self._calm_s_per_cost:
            slowdown = min(local_s / cost_s / self._calm_s_per_cost, _MAX_SLOWDOWN)
            # In the long run the mean slowdown is the target, however single steps differ.
            self._share *= math.exp(_GAIN * (TARGET_SLOWDOWN - slowdown))
        self._step_s = max((self._calm_s_per_cost or 1.0) * cost_s or local_s, _TINY_S)
        self._share = min(max(_MIN_SHARE, self._share), MAX_PASS_S / self._step_s)
        granted_s = self._share * self._step_s
        # What nobody wanted is not saved up, or a prompt would begin with a stall.
        self._saved_s = min(self._saved_s + granted_s, granted_s + self._step_s)

    def is_calm(self, now_s: float) -> bool:
        """Whether nothing has prefilled here for a while."""
        return now_s - self._prefilled_at_s > CALM_AFTER_S

    def prefilled(self, now_s: float, tokens: int, *, took_s: float, base_s: float) -> None:
        """Note a pass with so many tokens of prefill.

        Args:
            now_s: When it ended.
            tokens: At least 1.
            took_s: What the pass took longer because of them.
            base_s: What of that any pass takes; 0 for those that rode along.
        """
        self._prefilled_at_s = now_s
        if not base_s:
            self._saved_s = max(0.0, self._saved_s - took_s)
        token_s = max(took_s - base_s, 0.0) / tokens
        old = self._token_s or token_s
        self._token_s = old + _TOKEN_SMOOTHING * (token_s - old)

    def tokens(self, now_s: float, *, others_decode: bool, base_s: float) -> int:
        """Prefill that the next pass may take; 0 when it must wait.

        Args:
            now_s: When it begins.
            others_decode: Whether sequences of other requests are decoding, here or elsewhere.
            base_s: What any pass takes; 0: there will be one anyway, of rows that decode.
        """
        if not others_decode:
            if not self._token_s:
                return self.max_tokens
            # Where every pass takes long, a short one would be mostly what any pass takes.
            return self._worth(max(MAX_PASS_ALONE_S, 4 * base_s), 0.0)
        if now_s - self._decoded_at_s > IDLE_S:
            # However slow the machine: those who decode may never come back.
            usual_s = USUAL_CHUNK_TOKENS * self._token_s
            return self._worth(max(MAX_PASS_S - base_s, usual_s), 0.0)
        if not base_s:
            return self._worth(self._saved_s, self._step_s)
        # Stages may share cores, so that prefill is in the way where it seems not to be.
        gap_s = self._gap_s * min(1.0, self._share / (TARGET_SLOWDOWN - 1))
        time_s = self._decoded_at_s + gap_s - now_s - base_s
        return self._worth(time_s, base_s)

    def _worth(self, time_s: float, beside_s: float) -> int:
        """Tokens for so much time; 0: too few to be worth what is computed beside them."""
        if not self._token_s:
            return min(USUAL_CHUNK_TOKENS, self.max_tokens)
        if time_s < min(USUAL_CHUNK_TOKENS * self._token_s, beside_s):
            return 0
        return min(max(1, int(time_s / self._token_s)), self.max_tokens)
