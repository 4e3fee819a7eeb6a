"""Who leads a batch's rounds, and what is drafted for them: decided again and again by what rounds took.

While drafting does not pay the ring is closed, and plain decoding is as fast as it can be. Look-up costs
nothing, so it guesses all the same: that shows when its tokens are right often enough. A model's process
is started only when it promises to pay, and reads the text beside plain decoding before it is asked. Then
the client takes the lead wherever there is something to propose; a round without a proposal closes the
ring again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, Protocol

from engine.client.drafter import Drafter
from engine.core.clock import Clock
from engine.core.generation import DraftingNow, DraftMode
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.micro_batches import hop_costs
from engine.speculation.controller import Decision, Reason
from engine.speculation.costs import PLAIN, Costs, Option, Source
from engine.speculation.tree import Draft

LOOKUPS: Final = tuple(Option(Source.LOOKUP, num_tokens) for num_tokens in (2, 4, 8))
"""Chains that look-up may propose."""
PIPELINED: Final = (
    *(Option(Source.LOOKUP, num_tokens, ahead=2) for num_tokens in (4, 8)),
    Option(Source.LOOKUP, 8, ahead=4),
)
"""The same, several of them on their way at once."""
LOOKUPS_BESIDE: Final = tuple(
    Option(Source.LOOKUP, num_tokens, beside=True) for num_tokens in (4, 8)
)
"""Chains that wait at the first stage, beside a closed ring."""
MODELS_BESIDE: Final = (
    Option(Source.MODEL, 5, beside=True),
    Option(Source.MODEL, 13, width=4, beside=True),
    Option(Source.MODEL, 32, width=8, beside=True),
)
"""The same of a model, and trees."""
MODELS: Final = (
    *(Option(Source.MODEL, num_tokens) for num_tokens in (2, 4, 8)),
    Option(Source.MODEL, 13, width=4),
)
"""Chains and a tree that a model may propose."""
BY_PROBABILITIES: Final = tuple(
    Option(Source.MODEL, num_tokens, mode=mode)
    for mode in (DraftMode.DSD, DraftMode.DSSD, DraftMode.DISCO)
    for num_tokens in (2, 4, 8)
)
"""The same chains, drawn, where a request lets the answer be another one of the same distribution."""

_NAMES: Final[Mapping[Source, Literal["off", "ngram", "model"]]] = {
    Source.OFF: "off",
    Source.LOOKUP: "ngram",
    Source.MODEL: "model",
}


_START_S: Final = 2.0
"""What the start of a draft's process is worth: it takes some seconds of a core."""
_REPLICA_PASSES: Final = 2
"""Of a last stage's replica for a refused token, where nobody has measured them: what is new, then along
the chain, each as long as one of ours."""
_COUNTED_TOKENS: Final = 256
"""Of an answer's rest; few are as long as they may be."""


class Steered(Protocol):
    """A sequence as steering sees it; `engine.client.batch.Sequence` is it."""

    session: SessionId
    ids: list[int]
    draft: Draft | None
    leads: bool
    option: Option


class Policy(Protocol):
    """What decides; `engine.speculation.controller.Controller` is it, and says what each means."""

    def set_costs(self, costs: Costs) -> None:
        """Links or machines are other than they were."""
        ...

    def choose(self, silent: Collection[Source] = ()) -> Decision:
        """What to do next."""
        ...

    def observe(self, option: Option, committed: float, round_s: float) -> None:
        """Take what became of a round."""
        ...

    def observe_guesses(self, option: Option, guessed: int, right: int) -> None:
        """Take how many places of a draft were right."""
        ...

    def disturbed(self, round_s: float) -> None:
        """Take how long a plain round was beside which a draft got ready."""
        ...


class Steering:
    """Of one batch on one route.

    Args:
        policy: Decides.
        clock: Tells what rounds take.
        costs: What they should take.
        drafter: The model that drafts, if there is one.
        left_tokens: How many tokens the longest sequence may still get.
    """

    def __init__(
        self,
        policy: Policy,
        clock: Clock,
        costs: Costs,
        drafter: Drafter | None = None,
        left_tokens: Callable[[], int] = lambda: _COUNTED_TOKENS,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._costs = costs
        self._drafter = drafter
        self._left_tokens = left_tokens
        self.decision = self.when_silent = Decision(PLAIN, Reason.MEASURING, 1.0)
        """For the next round; and for sequences of which look-up has nothing to say."""
        self.now: DraftingNow | None = None
        """What the person sees of it."""
        self._running: dict[SessionId, Option] = {}
        """What the present round of each sequence is; nothing while it is not known."""
        self._since_s: dict[SessionId, float] = {}
        self._disturbed: set[SessionId] = set()
        """Sequences during whose present round a draft got ready."""
        self._rounds: dict[tuple[Option, bool], list[tuple[int, float]]] = defaultdict(list)
        """(Committed tokens, seconds) by what they were, and whether they were disturbed."""
        self._expected_s = -math.inf
        """When a row with a draft beside the ring was answered last."""
        self._guesses: dict[SessionId, int] = {}
        """What look-up says of a sequence that decodes plainly."""
        self._decide()

    def begins(self, sequence: Steered, option: Option, drafted_tokens: int) -> None:
        """A row of the client's has been made, with so many drafted tokens."""
        # Else it closes the ring, and is no round like those that follow. Beside a ring a batch's rows
        # take what the others' drafts do.
        if (
            drafted_tokens
            or (option.beside and self.goes_together)
            or (sequence.leads and not option.is_plain)
        ):
            self._running[sequence.session] = option

    def answered(
        self,
        sequence: Steered,
        guessed: int,
        right: int,
        rows: int,
        *,
        is_open: bool,
        was_expected: bool = False,
    ) -> None:
        """A round is over.

        Args:
            sequence: Its ids are new.
            guessed: Places in a row for which something was proposed, until nothing of it was right.
            right: Of them those where something was.
            rows: Sequences of the batch that have not finished.
            is_open: Whether the next row is the client's.
            was_expected: Whether the first stage had put a draft into the row of a closed ring.
        """
        now_s, session = self._clock.monotonic_s(), sequence.session
        option, before_s = self._running.pop(session, None), self._since_s.get(session)
        self._since_s[session] = now_s
        if was_expected:
            self._expected_s = now_s
            option = sequence.option  # it may have been there since an earlier round
            self._policy.observe_guesses(replace(option, beside=False), guessed, right)
        elif option is not None and option.is_plain and before_s is not None:
            # With drafts of others, or of ours that were still there, a round is no plain one.
            option = None if self._expected_s > before_s else option
        if option is not None and option.beside:
            self._policy.observe_guesses(option, 1, right)
        elif option is not None and not option.is_plain and (guessed or self.goes_together):
            # Who has nothing to say holds up the others of its batch as if it were wrong.
            self._policy.observe_guesses(option, max(1, guessed), right)
        guess = self._guesses.pop(session, None)
        if guess is not None:
            self._policy.observe_guesses(LOOKUPS[0], 1, int(guess == sequence.ids[-1]))
        starts = self._drafter is not None and self._drafter.is_starting
        if option is not None and before_s is not None and not starts:
            disturbed = option.is_plain and (session in self._disturbed or self._is_reading)
            self._rounds[option, disturbed].append((1 + right, now_s - before_s))
            self._observe(option, rows, disturbed=disturbed)
        self._disturbed.discard(session)
        if self._is_reading:
            self._disturbed.add(session)
        if not is_open:
            # A round that ends the client's lead also waits for its message.
            if not sequence.leads and not starts:
                self._running[session] = PLAIN
            proposal = sequence.draft.propose(sequence.ids, 1) if sequence.draft else None
            if proposal is not None and len(proposal):
                self._guesses[session] = proposal.ids[0]
            elif self.goes_together:
                self._policy.observe_guesses(LOOKUPS[0], 1, 0)

    def wanted(self, sequences: Sequence[Steered]) -> Option:
        """What those that decode plainly should be drafted with; plain: they go on as they are."""
        if not sequences:
            return PLAIN
        if self.decision.option.source is Source.LOOKUP and not any(
            sequence.session in self._guesses for sequence in sequences
        ):
            return self.when_silent.option
        return self.decision.option

    def takes_lead(self, sequence: Steered) -> None:
        """The client has asked for it: how long the round takes says nothing of plain ones."""
        self._running.pop(sequence.session, None)

    def disturbed(self) -> None:
        """A draft gets ready beside the present rounds."""
        self._disturbed |= self._since_s.keys()

    @property
    def goes_together(self) -> bool:
        """Whether rows go around in one frame with others: all then take what the round takes."""
        return self._costs.batch_size > 1

    @property
    def _is_reading(self) -> bool:
        return self._drafter is not None and self._drafter.is_reading

    def _observe(self, option: Option, rows: int, *, disturbed: bool) -> None:
        """Tell the policy what a round of all rows was, once all have had one."""
        seen = self._rounds[option, disturbed]
        if len(seen) < rows:
            return
        round_s = sum(s for _, s in seen) / len(seen)
        if disturbed:
            self._policy.disturbed(round_s)
        else:
            committed = sum(tokens for tokens, _ in seen) / len(seen)
            self._policy.observe(option, committed, round_s)
        seen.clear()
        self._decide()

    def _decide(self) -> None:
        drafter = self._drafter
        if drafter is not None:
            rows = self._costs.batch_size
            alone_s = drafter.level_s(1)
            costs = replace(
                self._costs,
                draft_token_s={Source.MODEL: drafter.level_s(rows) / rows},
                drawn_token_s=alone_s,
                replica_s=self._costs.replica_s or _REPLICA_PASSES * alone_s,
            )
            self._policy.set_costs(costs)
            if not drafter.is_ready and drafter.may_start:
                promised = self._policy.choose(), self._policy.choose({Source.LOOKUP})
                tokens = min(_COUNTED_TOKENS, self._left_tokens())
                if any(
                    decision.option.source is Source.MODEL and decision.saves_s * tokens > _START_S
                    for decision in promised
                ):
                    drafter.wake()
        silent = set() if drafter is not None and drafter.is_ready else {Source.MODEL}
        self.decision = self._policy.choose(silent)
        self.when_silent = Decision(PLAIN, self.decision.reason, 1.0)
        if not self.goes_together:
            self.when_silent = self._policy.choose(silent | {Source.LOOKUP})
        # A plain round between drafted ones, to see what it takes, is nothing to tell of.
        if self.now is None or self.decision.reason is not Reason.MEASURING:
            self.now = DraftingNow(_NAMES[self.decision.option.source], self.decision.reason.value)


def route_costs(
    route: Route,
    snapshot: SwarmSnapshot,
    link_s: Mapping[PeerId, float],
    row_bytes: int,
    batch_size: int,
) -> Costs:
    """What a round takes along a route, as far as its stages and lines are known.

    Args:
        route: Its stages.
        snapshot: Their announcements.
        link_s: One-way time from here to each.
        row_bytes: Hidden states of one token on the wire.
        batch_size: B.
    """
    hops = hop_costs(route, snapshot, link_s, row_bytes)
    number = len(hops)
    row_s = sum(hop.row_s for hop in hops) / number
    line_s = max(hop.line_row_s for hop in hops)
    ends: Sequence[PeerId] = (route.first, route.last)
    return Costs(
        num_stages=number,
        compute_s=sum(hop.base_s for hop in hops) / number + batch_size * row_s,
        compute_token_s=row_s,
        token_bytes=row_bytes,
        bytes_per_s=row_bytes / line_s if line_s else float("inf"),
        rtt_s=sum(hop.delay_s for hop in hops) / number,
        batch_size=batch_size,
        # Instead of the way from the last stage back to the first.
        client_rtt_s=max(0.0, sum(link_s.get(peer, 0.0) for peer in ends) - hops[-1].delay_s),
    )
