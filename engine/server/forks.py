"""Sequences that go on from the beginning of another one, which is still being computed. Pure.

Their rows wait here until the other sequence has come far enough; then the worker copies what they
share, and they go on. A stage needs this even when the stage before it has waited already: short
rows may overtake a long prompt in its queue.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from engine.core.ids import SessionId
from engine.server.scheduler import Work


@dataclass(slots=True)
class Fork:
    """One sequence that waits."""

    session: SessionId
    source: SessionId
    tokens: int
    """What it shares with `source`."""
    rows: list[Work] = field(default_factory=list)


class Forks:
    """All that wait at this stage."""

    def __init__(self) -> None:
        self._waiting: dict[SessionId, Fork] = {}
        self._of: dict[SessionId, set[SessionId]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, session: SessionId, source: SessionId, tokens: int) -> None:
        """Let `session` wait until `source` has computed `tokens`."""
        self._waiting[session] = Fork(session, source, tokens)
        self._of[source].add(session)

    def is_waiting(self, session: SessionId) -> bool:
        """Whether the session waits for another."""
        return session in self._waiting

    def holds_back(self, work: Work) -> bool:
        """Whether a row must wait; it is kept then.

        A row that begins within the shared part makes a sequence of its own of the fork.
        """
        fork = self._waiting.get(work.row.session)
        if fork is None:
            return False
        if work.row.position < fork.tokens:
            self._forget(fork)
            return False
        fork.rows.append(work)
        return True

    def waiting_tokens(self, session: SessionId) -> int:
        """Tokens of a session that wait here."""
        fork = self._waiting.get(session)
        return 0 if fork is None else sum(work.row.committed for work in fork.rows)

    def ready(self, source: SessionId, computed_tokens: int) -> list[Fork]:
        """Let go those that can go on, now that `source` has come so far."""
        waiting = [self._waiting[session] for session in self._of.get(source, ())]
        going = [fork for fork in waiting if fork.tokens <= computed_tokens]
        for fork in going:
            self._forget(fork)
        return going

    def drop(self, session: SessionId) -> list[SessionId]:
        """Forget a session that has ended.

        Returns:
            Those that waited for it, and now wait in vain; they are forgotten too.
        """
        own = self._waiting.get(session)
        if own is not None:
            self._forget(own)
        orphans = [self._waiting[waiting] for waiting in self._of.get(session, ())]
        for orphan in orphans:
            self._forget(orphan)
        return [orphan.session for orphan in orphans]

    def _forget(self, fork: Fork) -> None:
        del self._waiting[fork.session]
        self._of[fork.source].discard(fork.session)
        if not self._of[fork.source]:
            del self._of[fork.source]
