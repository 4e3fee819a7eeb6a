"""Whether to draft, and how: decided anew before every round, from what rounds have shown.

Pure: all times are handed in. Two things keep it from ever being slower than plain decoding by more
than a small share. An option must promise more than plain decoding does by a margin; and what it may
lose, if few of its tokens are right, must be covered by a balance that grows with the time that passes
and with what drafting has gained, and that losses are paid from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from engine.core.sentences import Sentence
from engine.speculation.costs import PLAIN, Costs, Option, Source
from engine.speculation.estimates import Acceptance, Timing

_MARGIN_ON: Final = 1.05
"""What drafting must promise over plain decoding to begin."""
_MARGIN_CHANGE: Final = 1.05
"""And one way to draft over another that is in use."""
_MARGIN_AHEAD: Final = 1.05
"""And chunks that do not wait for verdicts over those that do."""
_LOSS_SHARE: Final = 0.012
"""Of all time: what may be lost by trying."""
_FIRST_BALANCE_STEPS: Final = 0.5
"""What may be lost at the beginning, in plain steps."""
_DOUBT_DEVIATIONS: Final = 2.0
_DOUBT_TIME: Final = 1.15
"""How much longer than predicted a round may take that was never tried."""
_MAX_BALANCE_STEPS: Final = 4.0
_PLAIN_EVERY: Final = 40
"""Rounds with a draft after which a plain one shows again how long that takes."""


class Reason(Enum):
    """Why the next round is as it is, as words for the chat's live line."""

    PAYS = Sentence("drafts save time")
    MEASURING = Sentence("Shoal measures plain steps first")
    TOO_FEW_RIGHT = Sentence("too few drafted tokens are right")
    TOO_SLOW = Sentence("drafts take longer than they save")
    TRIED_ENOUGH = Sentence("drafts did not pay when they were tried")
    NOTHING_TO_DRAFT_WITH = Sentence("there is nothing to draft with")


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do in the next round."""

    option: Option
    reason: Reason
    speed_up: float
    """Expected over plain decoding, of the best way to draft, be it taken or not."""
    saves_s: float = 0.0
    """Expected of each token, by `option`."""


class Controller:
    """Of one sequence, or of a batch whose rows go together.

    Args:
        options: Ways to draft that are at hand; plain decoding is always one.
        costs: As they are known now.
        timing: Of the route; shared by what goes over it.
    """

    def __init__(self, options: Sequence[Option], costs: Costs, timing: Timing) -> None:
        self._options = [option for option in options if not option.is_plain]
        self._acceptance = Acceptance()
        self._costs = costs
        self._timing = timing
        self._current: dict[frozenset[Source], Option] = {}
        """What is in use, by what has nothing to say; nothing: plain decoding."""
        self._drafted_rounds = 0
        self._balance_s = _FIRST_BALANCE_STEPS * costs.plain_s

    def set_costs(self, costs: Costs) -> None:
        """Links or machines are other than they were."""
        self._costs = costs

    def choose(self, silent: Collection[Source] = ()) -> Decision:
        """What to do next.

        Args:
            silent: What has nothing to say this time, as look-up often does; to ask it costs nothing.
        """
        plain_s, without = self._expected_s(PLAIN), frozenset(silent)
        current = self._current.get(without, PLAIN)
        options = [
            option
            for option in self._options
            if option.source not in silent and (self._costs.takes_expected or not option.beside)
        ]
        if not options:
            return Decision(PLAIN, Reason.NOTHING_TO_DRAFT_WITH, 1.0)
        speed_ups = {
            option: self._committed(option) * plain_s / self._expected_s(option)
            for option in options
        }
        # Chunks that turn out worthless were computed by others' machines.
        worth = {o: s / (_MARGIN_AHEAD if o.ahead > 1 else 1.0) for o, s in speed_ups.items()}
        best = max(options, key=lambda option: worth[option])
        promised = speed_ups[best]
        if not self._timing.knows(PLAIN) or self._drafted_rounds >= _PLAIN_EVERY:
            return Decision(PLAIN, Reason.MEASURING, promised)
        if current in speed_ups and promised < speed_ups[current] * _MARGIN_CHANGE:
            best = current
        needed = 1.0 if best == current else _MARGIN_ON
        self._current[without] = PLAIN
        if speed_ups[best] < needed:
            return Decision(PLAIN, self._why_not(best, plain_s), promised)
        affordable = [o for o in options if self._may_lose_s(o, plain_s) <= self._balance_s]
        if best not in affordable:
            best = max(affordable, key=lambda option: worth[option], default=PLAIN)
            if best.is_plain or speed_ups[best] < _MARGIN_ON:
                return Decision(PLAIN, Reason.TRIED_ENOUGH, promised)
        self._current[without] = best
        saves_s = plain_s * (1 - 1 / speed_ups[best])
        return Decision(best, Reason.PAYS, speed_ups[best], saves_s)

    def observe(self, option: Option, committed: float, round_s: float) -> None:
        """Take what became of a round.

        Args:
            option: What was asked for; a draft that had nothing to say made it plain. The first of
                chunks ahead is a round like those without others behind it.
            committed: Tokens, the mean over the rows of a batch.
            round_s: All of it, drafting included.
        """
        plain_s = self._expected_s(PLAIN)
        sure = 0.0 if option.is_plain else self._acceptance.all_accepted(option)
        sure = 1.0 if option.ahead > 1 else sure  # else it had come after a whole round
        self._timing.note(option, round_s, self._costs.round_s(option, sure))
        if option.is_plain:
            self._drafted_rounds = 0
            plain_s = self._expected_s(PLAIN)
        else:
            self._drafted_rounds += 1
            self._balance_s += committed * plain_s - round_s
        allowed_s = _MAX_BALANCE_STEPS * plain_s
        self._balance_s = min(self._balance_s + _LOSS_SHARE * round_s, allowed_s)
        self._acceptance.fade(committed)

    def observe_guesses(self, option: Option, guessed: int, right: int) -> None:
        """Take how many places of a draft were right, as `Acceptance.note`; for each row.

        Also of drafts that were never sent: look-up costs nothing, so its guesses can be held
        against plain decoding.
        """
        self._acceptance.note(option, guessed, right)

    def disturbed(self, round_s: float) -> None:
        """Take how long a plain round was beside which a draft got ready: drafting pays for that."""
        plain_s = self._expected_s(PLAIN)
        self._balance_s += _LOSS_SHARE * round_s - max(0.0, round_s - plain_s)
        self._balance_s = min(self._balance_s, _MAX_BALANCE_STEPS * plain_s)

    def _expected_s(self, option: Option) -> float:
        return self._timing.expected_s(option, self._costs, self._acceptance)

    def _committed(self, option: Option, deviations: float = 0.0) -> float:
        return self._acceptance.committed(option, deviations, self._costs.in_time(option))

    def _may_lose_s(self, option: Option, plain_s: float) -> float:
        """If drafts are right as seldom as may be, by what is known of them."""
        committed = self._committed(option, _DOUBT_DEVIATIONS)
        doubt = 1.0 if self._timing.knows(option) else _DOUBT_TIME
        return max(0.0, doubt * self._expected_s(option) - committed * plain_s)

    def _why_not(self, option: Option, plain_s: float) -> Reason:
        """Whether better guesses would help at all."""
        most = 1.0 + option.num_tokens
        return (
            Reason.TOO_SLOW
            if most * plain_s < _MARGIN_ON * self._expected_s(option)
            else Reason.TOO_FEW_RIGHT
        )
