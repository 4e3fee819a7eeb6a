"""Replays: what a stage has kept of its outputs, sent to the next stage of a repaired route."""

from __future__ import annotations

import asyncio

from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable, StageRefused
from engine.core.ids import PeerId
from engine.protocol.frames import ELEMENT_BYTES, Frame, Kind
from engine.protocol.rows import Row
from engine.server.kept import KeptOutputs
from engine.server.pace import Pace
from engine.server.sessions import Session, SessionTable
from engine.server.worker_process import LoadOrder
from engine.swarm.links import Links

REPLAY_BYTES = 256 << 10
"""Hidden states in one frame of a replay: decoding cannot overtake within it."""
REPLAY_AHEAD_BYTES = 4 << 20
"""What a replay lets wait on the link."""
ROOM_LIMIT_S = 30.0
"""How long a line may stay full: who never reads must not hold up others' replays for ever."""
REPLAYS_AT_ONCE = 4
"""Replays that run at the same time."""
_ROOM_S = 0.01


class NotReached(PeerUnreachable):
    """A next stage, `peer`, does not answer or takes nothing in."""

    def __init__(self, text: str, peer: PeerId) -> None:
        super().__init__(text)
        self.peer = peer


class Replays:
    """Sends kept outputs, a few sessions at a time, without holding up what decodes.

    Args:
        links: Where frames go.
        clock: For the longest wait.
        table: The sessions.
        kept: What was sent onward.
        order: Shape of the hidden states.
        pace: Counts what is replayed.
    """

    def __init__(
        self,
        links: Links,
        clock: Clock,
        table: SessionTable,
        kept: KeptOutputs,
        order: LoadOrder,
        pace: Pace,
    ) -> None:
        self._links = links
        self._clock = clock
        self._table = table
        self._kept = kept
        self._order = order
        self._pace = pace
        self._at_once = asyncio.Semaphore(REPLAYS_AT_ONCE)

    async def send(self, wanted: list[tuple[Session, int]]) -> None:
        """Send the next stages what is kept of each session up to a token; return when it is queued.

        Raises:
            NotReached: The next stage does not answer, or takes nothing in.
            StageRefused: Something is not kept any more, or the session has gone on.
        """
        token_bytes = self._order.spec.hidden_size * ELEMENT_BYTES[self._order.dtype]
        max_tokens = max(1, REPLAY_BYTES // token_bytes)
        async with self._at_once:
            for session, end in wanted:
                await self._send_one(session, end, max_tokens)

    async def _send_one(self, session: Session, end: int, max_tokens: int) -> None:
        attempt, target = session.attempt, session.next_peer
        start = session.send_from
        while start < end:
            await self._send_until(session, attempt, target, start, end, max_tokens)
            # What the stage before us has replayed meanwhile is computed, and waits behind this.
            start, end = end, max(end, session.owed_to)
        if session.attempt == attempt:
            session.sent_to = end

    async def _send_until(
        self,
        session: Session,
        attempt: int,
        target: PeerId,
        start: int,
        end: int,
        max_tokens: int,
    ) -> None:
        for piece in self._kept.replay(session.id, start, end, max_tokens):
            if piece is None:
                raise StageRefused("The stage had no room to keep what it was to replay.")
            row = Row(session.id, piece.position, len(piece.ids), attempt)
            frame = Frame(
                Kind.STEP,
                piece.hidden,
                (row,),
                piece.ids,
                self._order.dtype,
                self._order.spec.hidden_size,
                session.lossy,
            )
            until_s = self._clock.monotonic_s() + ROOM_LIMIT_S
            while self._links.neighbours.queued_bytes(target) > REPLAY_AHEAD_BYTES:
                if self._clock.monotonic_s() >= until_s:
                    raise NotReached("The next stage takes in nothing of a replay.", target)
                await asyncio.sleep(_ROOM_S)  # nothing tells that a line is free again
            if self._table.get(session.id) is not session or session.attempt != attempt:
                raise StageRefused("The session ended, or is being repaired again.")
            try:
                self._links.send(target, frame)
            except PeerUnreachable as error:
                raise NotReached(str(error), target) from error
            self._pace.replayed_tokens += len(piece.ids)
            await asyncio.sleep(0)  # decoding goes on between pieces
