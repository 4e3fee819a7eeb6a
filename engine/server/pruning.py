"""When a first stage leaves drafted tokens out, and at which τ. Pure.

[BB] §7 prunes where links are the limit: fewer bytes make a round shorter, but some of the tokens that
go would have been accepted. So a round is predicted with every τ that the pruner was measured at, from
what the link carries, what judging takes, and what this sequence's rounds have shown so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.core.ids import PeerId, SessionId
from engine.protocol.rows import is_chain
from engine.server.pruner_facts import Level, PrunerFacts
from engine.server.scheduler import Work
from engine.server.sessions import Session

_MAX_GAIN: Final = 4.0
"""No round becomes shorter than this many times, whatever the link is said to carry."""
_MARGIN: Final = 1.02
"""What pruning must promise over sending everything."""
_FORGET: Final = 0.8
"""Weight of what was known, at each new round."""
_MIN_ROUNDS: Final = 3
"""Drafted rounds of a sequence before it is judged by them."""
_SLOWEST_S: Final = 10.0
"""A round that took longer was not one: the client waited for something else."""


@dataclass(slots=True)
class _Rounds:
    """What a sequence's rounds were, or would have been if nothing had been left out."""

    begun_s: float = 0.0
    end: int = 0
    """Where the committed tokens of the last row end."""
    drafted: bool = False
    """Whether a draft followed them."""
    level: Level | None = None
    """At which it was pruned."""
    saved_s: float = 0.0
    number: int = 0
    committed: float = 0.0
    """Tokens a round, the one that needs no draft included; the mean of late."""
    round_s: float = 0.0

    def next(self, now_s: float, end: int, *, drafted: bool) -> None:
        """A row has come: the round before it is over."""
        took_s = now_s - self.begun_s
        if self.drafted and end > self.end and 0 < took_s < _SLOWEST_S:
            accepted, share = (
                end - self.end - 1,
                1.0 if self.level is None else self.level.remaining,
            )
            weight = 1 - _FORGET if self.number else 1.0
            self.committed += weight * (1 + accepted / max(share, 0.1) - self.committed)
            self.round_s += weight * (took_s + self.saved_s - self.round_s)
            self.number += 1
        self.begun_s, self.end, self.drafted = now_s, end, drafted
        self.level, self.saved_s = None, 0.0


class Pruning:
    """Chooses τ for the drafts of each pass.

    Args:
        pruners: Those of the worker.
        get: The session of a row.
        link_token_s: What one more token takes on the link to a peer; 0 while that is not known.
    """

    def __init__(
        self,
        pruners: Sequence[PrunerFacts],
        get: Callable[[SessionId], Session | None],
        link_token_s: Callable[[PeerId], float],
    ) -> None:
        self._pruners = {facts.num_blocks: facts for facts in pruners}
        self._tree_s = {facts.num_blocks: facts.tree_s for facts in pruners}
        self._get = get
        self._link_token_s = link_token_s
        self._rounds: dict[SessionId, _Rounds] = {}

    def arrived(self, work: Work) -> None:
        """A row has come to the first stage."""
        row = work.row
        if not self._pruners or row.is_prefill or row.goes_on:
            return
        known = self._rounds.get(row.session)
        if known is None:
            if not row.parents:
                return
            known = self._rounds[row.session] = _Rounds()
        known.next(work.arrived_s, row.position + row.committed, drafted=bool(row.parents))

    def forget(self, session: SessionId) -> None:
        """It has ended, or begins anew."""
        self._rounds.pop(session, None)

    def thresholds(self, batch: Sequence[Work]) -> list[float]:
        """τ for each row of a pass; 0: all of it is sent on. Empty: so it is for every row.

        Chains are sent whole: what follows may go on from all of one before anybody has judged it, and
        what was measured are trees.
        """
        facts = self._facts(batch)
        if facts is None:
            return []
        drafted = [len(work.row.parents) for work in batch if work.row.parents]
        link_s = self._slowest_token_s(batch)
        chosen = []
        for work in batch:
            session = self._get(work.row.session)
            if session is None or session.is_last or is_chain(work.row.parents):
                chosen.append(0.0)
            elif session.prune_threshold is not None:
                chosen.append(session.prune_threshold)
            else:
                chosen.append(self._choose(work, facts, sum(drafted), len(drafted), link_s))
        return chosen

    def judged(self, batch: Sequence[Work], seconds: float) -> None:
        """Learn what judging the trees of a pass took; 0: none was."""
        facts = self._facts(batch)
        num_trees = sum(1 for work in batch if work.row.parents)
        if facts is not None and seconds:
            known_s = self._tree_s[facts.num_blocks]
            self._tree_s[facts.num_blocks] += (1 - _FORGET) * (seconds / num_trees - known_s)

    def _choose(
        self, work: Work, facts: PrunerFacts, drafted: int, num_trees: int, link_token_s: float
    ) -> float:
        """The τ at which a pass with so many drafted tokens makes the most of a second."""
        known = self._rounds.get(work.row.session)
        if known is None or known.number < _MIN_ROUNDS or not link_token_s:
            return 0.0
        cost_s = num_trees * self._tree_s[facts.num_blocks]
        best, best_level, best_saved_s = _MARGIN * known.committed / known.round_s, None, 0.0
        for level in facts.levels:
            # A pass is as long as all its rows are on the link, whoever they belong to.
            saved_s = drafted * (1 - level.surviving) * link_token_s - cost_s
            saved_s = min(saved_s, known.round_s * (1 - 1 / _MAX_GAIN))
            rate = (1 + (known.committed - 1) * level.remaining) / (known.round_s - saved_s)
            if rate > best:
                best, best_level, best_saved_s = rate, level, saved_s
        known.level, known.saved_s = best_level, best_saved_s
        return 0.0 if best_level is None else best_level.prune_threshold

    def _facts(self, batch: Sequence[Work]) -> PrunerFacts | None:
        """Of the pruner that judges a pass: the one that sees the most blocks of its span."""
        end = batch[0].span.end
        fitting = [depth for depth in self._pruners if depth <= end]
        if not fitting or not any(work.row.parents for work in batch):
            return None
        return self._pruners[max(fitting)]

    def _slowest_token_s(self, batch: Sequence[Work]) -> float:
        sessions = (self._get(work.row.session) for work in batch if work.row.parents)
        peers = {session.next_peer for session in sessions if session is not None}
        return max(map(self._link_token_s, peers), default=0.0)
