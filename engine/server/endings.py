"""The ends of sessions: what they held is freed, or kept for others, and clients are told why."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, SessionId
from engine.protocol.frames import Kind
from engine.protocol.messages import Failed, message_frame
from engine.protocol.rows import Row
from engine.server.serving import Serving
from engine.server.servings import Servings
from engine.server.sessions import Session
from engine.swarm.links import Links

HOUSEKEEPING_S = 1.0


class Endings:
    """Ends sessions, for whatever reason they end.

    Args:
        servings: Who has them.
        links: Where their clients are told.
        clock: For leases.
        on_change: Called when the number of sessions changes.
    """

    def __init__(
        self, servings: Servings, links: Links, clock: Clock, on_change: Callable[[], None]
    ) -> None:
        self._servings = servings
        self._links = links
        self._clock = clock
        self._on_change = on_change

    def end(
        self,
        serving: Serving,
        sessions: list[Session],
        code: str = "",
        reason: str = "",
        *,
        keep: bool = False,
    ) -> None:
        """Free what dropped sessions held, or keep it for others to begin with.

        With a reason, their clients are told.
        """
        if not sessions:
            return
        for session in sessions:
            serving.kept.forget(session.id)
        serving.reuse.end(sessions, self._clock.monotonic_s(), keep=keep)
        orphans = [orphan for session in sessions for orphan in serving.passes.drop(session)]
        if reason:
            self._tell(sessions, code, reason)
        text = "The sequence that this one was to go on from has ended."
        self.drop(orphans, PeerUnreachable.code, text)
        self.sessions_changed()

    def drop(self, sessions: Iterable[SessionId], code: str, reason: str) -> None:
        """End sessions, whoever owns them, and tell their clients why."""
        names = tuple(sessions)
        for serving in self._servings:
            self.end(serving, serving.table.drop(names), code, reason)

    def fail_row(self, row: Row, code: str, reason: str) -> None:
        """End the session of a row that cannot be computed, unless the row is of no account now."""
        serving = self._servings.holder(row.session)
        session = None if serving is None else serving.table.get(row.session)
        if session is not None and session.attempt == row.attempt:
            self.drop((row.session,), code, reason)

    def give_up(self, serving: Serving, code: str, reason: str) -> None:
        """End all sessions of a worker that is no more."""
        self._tell(serving.table.clear(), code, reason)
        serving.empty.set()
        self.sessions_changed()

    async def end_lapsed(self, serving: Serving) -> None:
        """End those whose clients are silent for too long, as time goes by, until cancelled."""
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            now_s = self._clock.monotonic_s()
            lapsed = serving.table.expired(now_s)
            self.end(serving, lapsed, "lease_lapsed", "The client was silent for too long.")
            serving.reuse.expire(now_s)

    def sessions_changed(self) -> None:
        """Tell everyone who waits for it that there are more or fewer."""
        for serving in self._servings:
            if len(serving.table):
                serving.empty.clear()
            else:
                serving.empty.set()
        self._on_change()

    def _tell(self, sessions: Iterable[Session], code: str, reason: str) -> None:
        for owner, ids in _by_owner(sessions):
            message = Failed(sessions=ids, code=code, reason=reason[:500])
            self._links.answer(owner, message_frame(Kind.FAILED, message))


def _by_owner(sessions: Iterable[Session]) -> Iterator[tuple[PeerId, tuple[SessionId, ...]]]:
    owners: dict[PeerId, list[SessionId]] = defaultdict(list)
    for session in sessions:
        owners[session.owner].append(session.id)
    for owner, ids in owners.items():
        yield owner, tuple(ids)
