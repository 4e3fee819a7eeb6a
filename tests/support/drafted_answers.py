"""What answers with drafts have in common with those without, and what was drafted for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from engine.core.generation import TokenEvent
from engine.speculation.controller import Decision, Reason
from engine.speculation.costs import PLAIN, Costs, Option, Source


def check_same(got: Sequence[Sequence[TokenEvent]], plain: Sequence[Sequence[TokenEvent]]) -> None:
    """All tokens are the same, and log-probabilities nearly so."""
    for some, expected in zip(got, plain, strict=True):
        assert [(e.id, e.finish) for e in some] == [(e.id, e.finish) for e in expected]
        for event, other in zip(some, expected, strict=True):
            assert (event.logprobs is None) == (other.logprobs is None)
            if event.logprobs is not None and other.logprobs is not None:
                assert event.logprobs.logprob == pytest.approx(other.logprobs.logprob, abs=1e-4)
                assert [i for i, _ in event.logprobs.top] == [i for i, _ in other.logprobs.top]


def total(events: Sequence[Sequence[TokenEvent]], name: str) -> int:
    """Of all answers together, such as `drafted_tokens`."""
    return sum(getattr(event, name) for some in events for event in some)


def counts(events: Sequence[Sequence[TokenEvent]]) -> tuple[int, int]:
    """Tokens drafted and accepted."""
    return total(events, "drafted_tokens"), total(events, "accepted_tokens")


class Moody:
    """Drafts for a few rounds, then does not, whatever happens."""

    option = Option(Source.LOOKUP, 4)

    def __init__(self, costs: object, timing: object) -> None:
        self.rounds: list[Option] = []
        self.guesses = 0

    def set_costs(self, costs: Costs) -> None:
        pass

    def choose(self, silent: Collection[Source] = ()) -> Decision:
        drafts = len(self.rounds) % 6 >= 3
        return Decision(self.option if drafts else PLAIN, Reason.PAYS, 1.0)

    def observe(self, option: Option, committed: float, round_s: float) -> None:
        self.rounds.append(option)

    def observe_guesses(self, option: Option, guessed: int, right: int) -> None:
        self.guesses += guessed

    def disturbed(self, round_s: float) -> None:
        pass
