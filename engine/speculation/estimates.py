"""What rounds have shown: how often drafts are right, and how far times are from the predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from engine.core.generation import DraftMode
from engine.speculation.costs import PLAIN, Costs, Option, Source
from engine.speculation.pipelining import answer_tokens

_PRIOR: Final = {Source.LOOKUP: 0.3, Source.MODEL: 0.5}
"""Chance that a drafted token is right before anything is known of the text."""
_PRIOR_WEIGHT: Final = 3.0
"""In guesses."""
_KEPT_PER_TOKEN: Final = 0.985
"""What a committed token leaves of older guesses' weight: a text may change what it is about."""
_JUDGED_GAIN: Final = 0.25
"""What acceptance by probabilities has over shared noise, as a share of r (1 - r): about half of what it
has at most, because shared noise accepts o / (2 - o) at least where the other accepts o."""
_TREE_GAIN: Final = 1.5
"""A tree's place is right as if it were guessed so many times instead of once."""
_TIME_SHARE: Final = 0.25
"""Of the newest time in the mean."""


@dataclass(slots=True)
class _Guesses:
    right: float = 0.0
    made: float = 0.0


class Acceptance:
    """How likely the next place of a draft is right, by source and shape; of one sequence or batch.

    Old guesses fade with every committed token, towards the prior, so that what did not pay is
    thought of again.
    """

    def __init__(self) -> None:
        self._guesses: dict[tuple[Source, bool, bool, bool], _Guesses] = {}

    def note(self, option: Option, guessed: int, right: int) -> None:
        """Take what became of a draft.

        Args:
            option: What drafted.
            guessed: Places in a row that were guessed until one was wrong, that one included; beside a
                closed ring one for each of its rounds.
            right: Of them the right ones; `guessed` or one less, beside a ring all that came of it.
        """
        guesses = self._guesses.setdefault(_key(option), _Guesses())
        guesses.made += guessed
        guesses.right += right

    def fade(self, committed: float) -> None:
        """Let so many committed tokens pass."""
        kept = _KEPT_PER_TOKEN**committed
        for guesses in self._guesses.values():
            guesses.made *= kept
            guesses.right *= kept

    def per_place(self, option: Option, deviations: float = 0.0) -> float:
        """Chance that a place is right when all before it are; below 1.

        Args:
            option: What drafts.
            deviations: By how many standard deviations to doubt what was seen.
        """
        option = replace(option, beside=False)
        guesses = self._guesses.get(_key(option), _Guesses())
        rate = _blended(guesses, self._prior(option))
        doubt = deviations * math.sqrt(rate * (1 - rate) / (guesses.made + _PRIOR_WEIGHT))
        return min(max(0.0, rate - doubt), 0.98)

    def all_accepted(self, option: Option) -> float:
        """Chance that the longest path is right to its end."""
        return self.per_place(option) ** option.depth

    def committed(
        self, option: Option, deviations: float = 0.0, in_time: tuple[int, int] = (1, 2)
    ) -> float:
        """Tokens that a round commits on average (a of [BB] §7), the target's own included.

        Args:
            option: What drafts.
            deviations: By how many standard deviations to doubt what was seen.
            in_time: See `Costs.in_time`.
        """
        if option.is_plain:
            return 1.0
        rate = self.per_place(option, deviations)
        if option.beside:
            return 1.0 + self._expected(option, rate, deviations, *in_time)
        if option.ahead > 1:
            return answer_tokens(rate, option.num_tokens)
        return 1.0 + sum(rate**depth for depth in range(1, option.depth + 1))

    def _expected(
        self,
        option: Option,
        per_place: float,
        deviations: float,
        meanwhile: int,
        levels: int,
    ) -> float:
        """What a round of a closed ring commits beyond its token.

        All that comes `meanwhile` must be guessed for the rest of the `levels` to be of use, and a row
        without a draft comes before each with one.
        """
        hit = per_place**meanwhile
        places = range(1, levels - meanwhile + 1)
        prior = hit / (1 + hit) * sum(per_place**place for place in places)
        rounds = self._guesses.get(_key(option), _Guesses())
        weight = rounds.made + _PRIOR_WEIGHT
        mean = (rounds.right + _PRIOR_WEIGHT * prior) / weight
        return max(0.0, mean - deviations * math.sqrt(mean * (1 + mean) / weight))

    def _prior(self, option: Option) -> float:
        """From the nearest thing that is known: chains speak for trees, and each rule for the other."""
        prior = _PRIOR[option.source]
        shared = self._guesses.get((option.source, True, True, False), _Guesses())
        judged = self._guesses.get((option.source, True, False, False), _Guesses())
        if option.mode is not DraftMode.SHARED:
            return _by_other_rule(_blended(shared, prior), _JUDGED_GAIN)
        if judged.made:
            likely = _blended(judged, _by_other_rule(prior, _JUDGED_GAIN))
            prior = _by_other_rule(likely, -_JUDGED_GAIN)
        if option.width > 1:
            return float(1 - (1 - _blended(shared, prior)) ** _TREE_GAIN)
        return prior


class Timing:
    """Measured over predicted times; shared by all that goes over one route."""

    def __init__(self) -> None:
        self._ratios: dict[Option, float] = {}
        self._of_rounds = 1.0
        """Over all options that draft, for those that were not tried."""

    def knows(self, option: Option) -> bool:
        """Whether a round of it was ever seen."""
        return option in self._ratios

    def note(self, option: Option, measured_s: float, predicted_s: float) -> None:
        """Take the time of one round; of chunks ahead, what passed since the answer to the one before."""
        if predicted_s <= 0 or measured_s <= 0:
            return
        ratio = measured_s / predicted_s
        known = self._ratios.get(option)
        # The first one stands alone; a single late packet must not decide later on.
        self._ratios[option] = (
            ratio if known is None else known + _TIME_SHARE * (min(ratio, 2 * known) - known)
        )
        if not option.is_plain and option.ahead == 1 and not option.beside:
            self._of_rounds += _TIME_SHARE * (self._ratios[option] - self._of_rounds)

    def expected_s(self, option: Option, costs: Costs, acceptance: Acceptance) -> float:
        """What a round will take."""
        sure = 0.0 if option.is_plain else acceptance.all_accepted(option)
        known = self._ratios.get(option)
        if known is None:
            is_led = not option.is_plain and not option.beside
            known = self._of_rounds if is_led else self._ratios.get(PLAIN, 1.0)
        if option.ahead == 1:
            return costs.round_s(option, sure) * known
        alone_s = self.expected_s(replace(option, ahead=1), costs, acceptance)
        return (1 - sure) * alone_s + sure * known * costs.round_s(option, 1.0)


def _by_other_rule(rate: float, gain: float) -> float:
    return rate + gain * rate * (1 - rate)


def _blended(guesses: _Guesses, prior: float) -> float:
    return (guesses.right + _PRIOR_WEIGHT * prior) / (guesses.made + _PRIOR_WEIGHT)


def _key(option: Option) -> tuple[Source, bool, bool, bool]:
    return option.source, option.width == 1, option.mode is DraftMode.SHARED, option.beside
