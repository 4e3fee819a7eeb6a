"""Who leads a batch's rounds, and what is drafted for them: decided again and again by what rounds took.

While drafting does not pay the ring is closed, and plain decoding is as fast as it can be. Look-up costs
nothing, so it guesses all the same: that shows when its tokens are right often enough. Then the client
takes the lead wherever there is something to propose; a round without a proposal closes the ring again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from engine.core.clock import Clock
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.micro_batches import hop_costs
from engine.speculation.controller import Decision
from engine.speculation.costs import PLAIN, Costs, Option, Source
from engine.speculation.tree import Draft

LOOKUPS: Final = tuple(Option(Source.LOOKUP, num_tokens) for num_tokens in (2, 4, 8))
"""Chains that look-up may propose."""


class Steered(Protocol):
    """A sequence as steering sees it; `engine.client.batch.Sequence` is it."""

    session: SessionId
    ids: list[int]
    draft: Draft | None
    leads: bool


class Policy(Protocol):
    """What decides; `engine.speculation.controller.Controller` is it, and says what each means."""

    def choose(self) -> Decision:
        """What to do next."""
        ...

    def observe(self, option: Option, committed: float, round_s: float) -> None:
        """Take what became of a round."""
        ...

    def observe_guesses(self, option: Option, guessed: int, right: int) -> None:
        """Take how many places of a draft were right."""
        ...


class Steering:
    """Of one batch on one route.

    Args:
        policy: Decides.
        clock: Tells what rounds take.
    """

    def __init__(self, policy: Policy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock
        self.decision: Decision = policy.choose()
        """For the next round."""
        self._running: dict[SessionId, Option] = {}
        """What the present round of each sequence is; nothing while it is not known."""
        self._since_s: dict[SessionId, float] = {}
        self._rounds: dict[Option, list[tuple[int, float]]] = defaultdict(list)
        self._guesses: dict[SessionId, int] = {}
        """What look-up says of a sequence that decodes plainly."""

    @property
    def num_tokens(self) -> int:
        """To propose for the next round."""
        return self.decision.option.num_tokens

    def begins(self, sequence: Steered, drafted_tokens: int) -> None:
        """A row of the client's has been made, with so many drafted tokens."""
        if drafted_tokens:  # else it closes the ring, and is no round like those that follow
            self._running[sequence.session] = self.decision.option

    def answered(
        self, sequence: Steered, drafted: int, accepted: int, rows: int, *, is_open: bool
    ) -> None:
        """A round is over.

        Args:
            sequence: Its ids are new.
            drafted: Tokens that were proposed, a chain.
            accepted: Of them the right ones.
            rows: Sequences of the batch that have not finished.
            is_open: Whether the next row is the client's.
        """
        now_s, session = self._clock.monotonic_s(), sequence.session
        option, before_s = self._running.pop(session, None), self._since_s.get(session)
        self._since_s[session] = now_s
        if drafted and option is not None and not option.is_plain:
            self._policy.observe_guesses(option, min(accepted + 1, drafted), accepted)
        guess = self._guesses.pop(session, None)
        if guess is not None:
            self._policy.observe_guesses(LOOKUPS[0], 1, int(guess == sequence.ids[-1]))
        if option is not None and before_s is not None:
            self._rounds[option].append((1 + accepted, now_s - before_s))
            self._observe(option, rows)
        if not is_open:
            # A round that ends the client's lead also waits for its message.
            if not sequence.leads:
                self._running[session] = PLAIN
            proposal = sequence.draft.propose(sequence.ids, 1) if sequence.draft else None
            if proposal is not None and len(proposal):
                self._guesses[session] = proposal.ids[0]

    def wants_lead(self, sequence: Steered) -> bool:
        """Whether the ring of a sequence that decodes plainly should be opened now."""
        return bool(
            not sequence.leads
            and not self.decision.option.is_plain
            and sequence.session in self._guesses
        )

    def takes_lead(self, sequence: Steered) -> None:
        """The client has asked for it: how long the round takes says nothing of plain ones."""
        self._running.pop(sequence.session, None)

    def _observe(self, option: Option, rows: int) -> None:
        """Tell the policy what a round of all rows was, once all have had one."""
        seen = self._rounds[option]
        if len(seen) < rows:
            return
        committed = sum(tokens for tokens, _ in seen) / len(seen)
        self._policy.observe(option, committed, sum(s for _, s in seen) / len(seen))
        seen.clear()
        self.decision = self._policy.choose()


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
