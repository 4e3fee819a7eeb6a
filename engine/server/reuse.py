"""Nobody computes twice: sessions begin with what an earlier or another session has computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.core.errors import StageRefused
from engine.core.generation import PrefixUse
from engine.core.ids import PeerId, SessionId
from engine.protocol.messages import OpenRequest, SequenceMessage
from engine.protocol.prefixes import digests, marks
from engine.protocol.rows import Row
from engine.server.pace import Pace
from engine.server.passes import Passes
from engine.server.prefixes import Entry, Match, PrefixIndex
from engine.server.sessions import Session, SessionTable
from engine.server.worker_process import WorkerProcess


class PrefixReuse:
    """Opens and ends sessions so that what was computed is kept while there is room for it.

    Args:
        table: The sessions, and the room that they may use.
        index: What is kept.
        passes: Where forks wait.
        worker: Holds the KV, of sessions and of what is kept under the same ids.
        pace: Counts what is reused.
    """

    def __init__(
        self,
        table: SessionTable,
        index: PrefixIndex,
        passes: Passes,
        worker: WorkerProcess,
        pace: Pace,
    ) -> None:
        self._table = table
        self._index = index
        self._passes = passes
        self._worker = worker
        self._pace = pace

    def open(self, request: OpenRequest, owner: PeerId, now_s: float) -> tuple[int, ...]:
        """Reserve room for all of a request's sequences, or for none.

        Returns:
            Per sequence, how many of its first tokens are here already or will be: its first row
            may begin there.

        Raises:
            CacheFull: Not enough room is left.
            StageRefused: The request does not fit this stage, or its ids are in use.
        """
        for sequence in request.sequences:
            left_behind = self._index.get(SessionId(sequence.session))
            if left_behind is not None and left_behind.owner != owner:
                raise StageRefused("A session id of the request is in use already.")
        sessions = self._table.open(request, owner, now_s)
        self._forget([session.id for session in sessions])
        room_bytes = self._table.kv_budget_bytes - self._table.used_bytes
        used: dict[SessionId, Entry] = {}
        for session, sequence in zip(sessions, request.sequences, strict=True):
            match = self._begin(session, sequence, request.prefixes, now_s)
            if match is None:
                continue
            wanted = used | {match.entry.session: match.entry}
            if self._table.in_pages and sum(e.room_bytes for e in wanted.values()) > room_bytes:
                continue  # pages have no room for both it and its copies
            used = wanted
            self._take_over(session, match)
        self._worker.close_sessions(self._index.shrink(room_bytes, spare=used))
        self._worker.open(sessions[0].span, request.sequences)
        for session in sessions:
            if session.reused_from is not None:
                self._worker.copy_prefix(session.id, session.reused_from, session.position)
        # Where room is short, what was just copied goes too; the copy is worth more.
        self._worker.close_sessions(self._index.shrink(room_bytes))
        for session, sequence in zip(sessions, request.sequences, strict=True):
            self._fork(session, sequence)
        return tuple(session.position for session in sessions)

    def arrived(self, session: Session, row: Row) -> None:
        """Take note of a row of tokens."""
        if not session.has_begun:
            session.has_begun = True
            self._pace.reused_tokens += row.position

    def end(self, sessions: Sequence[Session], now_s: float, *, keep: bool) -> None:
        """Free what sessions held that have left the table.

        Args:
            sessions: With their waiting rows still in place.
            now_s: When.
            keep: Hold on to what they computed, as far as there is room.
        """
        freed: list[SessionId] = []
        entries: list[Entry] = []
        for session in sessions:
            entry = self._entry(session) if keep else None
            if entry is None:
                freed.append(session.id)
            else:
                entries.append(entry)
                freed += self._index.add(entry, now_s)
        room_bytes = self._table.kv_budget_bytes - self._table.used_bytes
        freed += self._index.shrink(room_bytes)
        self._worker.close_sessions(freed)
        for entry in entries:  # of a large batch most have had to go again already
            if self._index.get(entry.session) is entry:
                self._worker.keep_prefix(entry.session, entry.tokens)

    def expire(self, now_s: float) -> None:
        """Free what nobody has used for long."""
        self._worker.close_sessions(self._index.expired(now_s))

    def failed(self, sessions: Iterable[SessionId]) -> None:
        """Forget what the worker could not keep or copy, so that it is not tried again."""
        for session in sessions:
            self._forget([session])
            opened = self._table.get(session)
            if opened is not None and opened.reused_from is not None:
                self._forget([opened.reused_from])

    def _begin(
        self, session: Session, sequence: SequenceMessage, use: PrefixUse, now_s: float
    ) -> Match | None:
        """Say how a session treats prefixes, and what it may begin with."""
        if session.lossy:
            use = PrefixUse.NONE  # what was computed from rounded states is nobody else's
        session.prefixes, session.opened_way = use, session.way
        if use is PrefixUse.NONE:
            return None
        session.ids = np.zeros(session.capacity_tokens, np.int32)
        shares = use is PrefixUse.SHARED
        match = self._index.find(
            session.owner, session.way, sequence.prefix_digests, now_s, shares=shares
        )
        if match is None or not sequence.fork_tokens <= match.tokens < session.capacity_tokens:
            return None
        return match

    @staticmethod
    def _take_over(session: Session, match: Match) -> None:
        session.reused_from = match.entry.session
        session.position = session.computed = match.tokens
        if session.ids is not None:
            session.ids[: match.tokens] = match.entry.ids[: match.tokens]

    def _fork(self, session: Session, sequence: SequenceMessage) -> None:
        if sequence.fork_of is None or session.reused_from is not None:
            return
        source, tokens = self._table.get(SessionId(sequence.fork_of)), sequence.fork_tokens
        if (
            source is None
            or source is session
            or (source.owner, source.way, source.lossy)
            != (session.owner, session.way, session.lossy)
            or not 0 < tokens <= source.capacity_tokens
            or tokens >= session.capacity_tokens
        ):
            return
        session.position = session.forked_tokens = tokens
        self._passes.fork(session, source, tokens)

    def _entry(self, session: Session) -> Entry | None:
        """What is worth keeping of a session that has ended."""
        computed = self._passes.computed_tokens(session)
        tokens = max(marks(computed), default=0)
        if session.ids is None or not tokens:
            return None
        if session.way != session.opened_way:
            return None  # its beginning has come from stages that are not on its way now
        if session.forked_tokens > computed // 2:
            return None  # of rows that differ in little, one is enough
        ids = session.ids[:tokens].copy()
        return Entry(
            session=session.id,
            owner=session.owner,
            shared=session.prefixes is PrefixUse.SHARED,
            way=session.way,
            ids=ids,
            digests=tuple(digests(ids)),
            # It is kept beside the blocks, wherever it lies now.
            room_bytes=self._table.room_bytes(tokens, session.span),
        )

    def _forget(self, sessions: Iterable[SessionId]) -> None:
        self._worker.close_sessions([session for session in sessions if self._index.drop(session)])
