"""A stage's part when something on a session's way is lost: keep what there is, and mend the way.

Losing a link ends no session. Its client is told and repairs the route (`engine.protocol.recovery`
has the order of things); until then rows that would leave a gap are ignored, and what cannot be sent
is kept all the same (`server.kept`). Only the session's owner may put it on hold, lead it elsewhere
or have outputs replayed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable
from typing import Any

from engine.config import StageConfig
from engine.core.clock import Clock
from engine.core.errors import (
    EngineError,
    PeerError,
    PeerUnreachable,
    StageRefused,
)
from engine.core.ids import PeerId, SessionId, short
from engine.core.plans import Span
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import message_frame, parse
from engine.protocol.recovery import (
    DRAFT_REFUSED,
    DRAINING,
    MOVED,
    ROWS_MISSING,
    CourseReply,
    HeldSession,
    HoldReply,
    HoldRequest,
    Notice,
    ReplayRequest,
    RouteRequest,
)
from engine.server.kept import KeptOutputs
from engine.server.pace import Pace
from engine.server.passes import Passes
from engine.server.replays import NotReached, Replays
from engine.server.sessions import Session, SessionTable
from engine.server.worker_process import LoadOrder
from engine.swarm.links import Links

logger = logging.getLogger(__name__)

ORPHAN_LEASE_S = 10.0
"""How long a session lives on whose client's link is lost."""
REACH_S = 2.0
"""The longest wait for the next stage of a new route."""
MAX_ERRANDS = 64
"""ROUTE and REPLAY of one client that may be under way."""
COMPRESS_EVERY_S = 0.2


class Recovery:
    """Answers HOLD, ROUTE and REPLAY, and tells clients of lost links.

    Args:
        links: Where frames go.
        clock: For leases.
        config: For leases.
        table: The sessions.
        passes: Where their rows wait.
        kept: What was sent onward.
        order: Shape of the hidden states.
        pace: Counts what is replayed.
        tasks: Where errands run.
    """

    def __init__(
        self,
        links: Links,
        clock: Clock,
        config: StageConfig,
        table: SessionTable,
        passes: Passes,
        kept: KeptOutputs,
        order: LoadOrder,
        pace: Pace,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._links = links
        self._clock = clock
        self._config = config
        self._table = table
        self._passes = passes
        self._kept = kept
        self._tasks = tasks
        self._errands: Counter[PeerId] = Counter()
        self._replays = Replays(links, clock, table, kept, order, pace)

    # Losses ---------------------------------------------------------------------------------

    def lost(self, peer: PeerId, error: PeerError) -> None:
        """A link is gone: tell the clients of all sessions that pass over it."""
        touched = []
        for session in self._table.all():
            if session.owner == peer:
                self._orphan(session)
            if self._part(session, peer):
                touched.append(session)
        self._tell(touched, error.code, peer, f"The link to a stage was lost: {error}")

    def undelivered(self, peer: PeerId, frame: Frame, error: PeerUnreachable) -> None:
        """Rows could not be sent."""
        sessions = [s for row in frame.rows if (s := self._table.get(row.session)) is not None]
        if frame.kind is Kind.TOKENS:
            for session in sessions:
                self._orphan(session)
            return
        parted = [session for session in sessions if self._part(session, peer)]
        self._tell(parted, error.code, peer, str(error))

    def rows_missing(self, session: Session, peer: PeerId, reason: str) -> None:
        """Rows came that do not follow on what is here."""
        session.is_deaf = True
        self._tell([session], ROWS_MISSING, peer, reason)

    def draft_refused(self, session: Session, reason: str) -> None:
        """A draft came that cannot be: the session waits for its client to do without."""
        session.is_deaf = True
        self._tell([session], DRAFT_REFUSED, None, reason)

    def drain(self, moved_to: Span | None) -> None:
        """Tell all clients that this will end soon, and which blocks the node holds then."""
        if moved_to is None:
            reason = "The stage will pause when its sessions have ended or gone elsewhere."
            self._tell(self._table.all(), DRAINING, None, reason)
        else:
            reason = f"The stage holds blocks {moved_to} now."
            self._tell(self._table.all(), MOVED, None, reason, moved_to)

    def _orphan(self, session: Session) -> None:
        lapses_s = self._clock.monotonic_s() + ORPHAN_LEASE_S
        session.expires_s = min(session.expires_s, lapses_s)
        if session.is_last:
            session.is_mute = True  # nobody reads what would go round the ring

    @staticmethod
    def _part(session: Session, peer: PeerId) -> bool:
        """Note that nothing goes to or comes from a neighbour; whether it is one."""
        is_next, is_previous = peer == session.next_peer, peer == session.previous_peer
        session.is_mute = session.is_mute or is_next
        session.is_deaf = session.is_deaf or is_previous
        return is_next or is_previous

    def _tell(
        self,
        sessions: Iterable[Session],
        code: str,
        peer: PeerId | None,
        reason: str,
        moved_to: Span | None = None,
    ) -> None:
        groups: dict[tuple[PeerId, int], list[SessionId]] = defaultdict(list)
        for session in sessions:
            groups[session.owner, session.attempt].append(session.id)
        for (owner, attempt), ids in groups.items():
            for start in range(0, len(ids), 4096):
                notice = Notice(
                    sessions=tuple(ids[start : start + 4096]),
                    attempt=attempt,
                    code=code,
                    peer=peer or "",
                    start=0 if moved_to is None else moved_to.start,
                    end=0 if moved_to is None else moved_to.end,
                    reason=reason[:500],
                )
                self._links.answer(owner, message_frame(Kind.NOTICE, notice))

    # What a client asks ---------------------------------------------------------------------

    def hold(self, peer: PeerId, request: HoldRequest) -> None:
        """Let sessions wait for a new attempt and say how far they are."""
        held, orphans = [], set[SessionId]()
        for name in request.ids():
            session = self._table.get(name)
            if session is None or session.owner != peer or request.attempt < session.attempt:
                continue
            if request.attempt > session.attempt:
                orphans |= set(self._passes.drop(session))
                session.hold(request.attempt)
            kept_from = self._kept.start(session.id, session.computed)
            held.append(
                HeldSession(session=session.id, position=session.computed, kept_from=kept_from)
            )
        for name in orphans - set(request.ids()):
            if (orphan := self._table.get(name)) is not None:
                text = "The sequence that this one was to go on from is being repaired."
                self.rows_missing(orphan, self._links.local_peer, text)
        self._table.keep(request.ids(), peer, self._clock.monotonic_s())
        reply = HoldReply(
            request=request.request, sessions=tuple(held), lease_s=self._config.lease_s
        )
        self._links.answer(peer, message_frame(Kind.HELD, reply))

    def route(self, peer: PeerId, request: RouteRequest) -> None:
        """Lead sessions along a new route; answered when the next stage can be reached."""
        try:
            sessions = self._owned(peer, request.attempt, [s.session for s in request.sessions])
            route = request.route()
            index = self._table.place(route)
            for session in sessions:
                if session.is_routed or session.span != route.hops[index].span:
                    raise StageRefused("The sessions are not waiting for such a route.")
            for session, course in zip(sessions, request.sessions, strict=True):
                session.lead(route, index, course.send_from)
        except EngineError as error:
            self._refuse(peer, Kind.ROUTED, request.request, error)
            return
        self._send_on_errand(peer, Kind.ROUTED, request.request, self._reach(sessions))

    def replay(self, peer: PeerId, request: ReplayRequest) -> None:
        """Send the next stage what is kept for it; answered when all of it is on its way."""
        try:
            sessions = self._owned(peer, request.attempt, [s.session for s in request.sessions])
            for session, wanted in zip(sessions, request.sessions, strict=True):
                if not session.is_routed:
                    raise StageRefused("The sessions are not waiting for a replay.")
                if not session.send_from <= wanted.end <= session.computed:
                    raise StageRefused("The stage has not computed what it was to replay.")
                if wanted.end - session.send_from > session.replay_tokens_left:
                    raise StageRefused("The stage has replayed these sessions too often already.")
        except EngineError as error:
            self._refuse(peer, Kind.REPLAYED, request.request, error)
            return
        ends = [wanted.end for wanted in request.sessions]
        for session, end in zip(sessions, ends, strict=True):
            session.replay_tokens_left -= end - session.send_from
        errand = self._replays.send(list(zip(sessions, ends, strict=True)))
        self._send_on_errand(peer, Kind.REPLAYED, request.request, errand)

    def _owned(self, peer: PeerId, attempt: int, names: Iterable[int]) -> list[Session]:
        sessions = [self._table.get(SessionId(name)) for name in names]
        found = [s for s in sessions if s is not None and s.owner == peer and s.attempt == attempt]
        if len(found) < len(sessions) or len({session.id for session in found}) < len(sessions):
            raise StageRefused("Some of the sessions are not here any more.")
        return found

    def _send_on_errand(
        self, peer: PeerId, kind: Kind, request: int, errand: Coroutine[Any, Any, None]
    ) -> None:
        if self._errands[peer] >= MAX_ERRANDS:
            errand.close()
            error = StageRefused("The stage has too much to mend for this client already.")
            self._refuse(peer, kind, request, error)
            return
        self._errands[peer] += 1
        self._tasks.create_task(self._run(peer, kind, request, errand))

    async def _run(
        self, peer: PeerId, kind: Kind, request: int, errand: Coroutine[Any, Any, None]
    ) -> None:
        try:
            await errand
            self._links.answer(peer, message_frame(kind, CourseReply(request=request)))
        except NotReached as error:
            self._refuse(peer, kind, request, error, error.peer)
        except EngineError as error:
            self._refuse(peer, kind, request, error)
        except Exception:
            logger.exception("a route could not be repaired")
            text = "Something unexpected went wrong at the stage; see its log."
            self._refuse(peer, kind, request, StageRefused(text))
        finally:
            self._errands[peer] -= 1
            if not self._errands[peer]:
                del self._errands[peer]

    async def _reach(self, sessions: list[Session]) -> None:
        target = sessions[0].next_peer
        try:
            async with asyncio.timeout(REACH_S):
                await self._links.connect(target)
        except (PeerError, TimeoutError) as error:
            text = str(error) or f"The next stage …{short(target)} does not answer."
            raise NotReached(text, target) from error
        if any(session.is_deaf or session.is_mute for session in sessions):
            raise PeerUnreachable("A link of the route broke again while it was being repaired.")

    def _refuse(
        self,
        peer: PeerId,
        kind: Kind,
        request: int,
        error: EngineError,
        target: PeerId | None = None,
    ) -> None:
        reply = CourseReply(
            request=request, refused=str(error)[:500], code=error.code, peer=target or ""
        )
        self._links.answer(peer, message_frame(kind, reply))

    # The record -----------------------------------------------------------------------------

    async def compress_kept(self) -> None:
        """Compress the oldest kept outputs whenever room gets scarce, until cancelled."""
        while True:
            await asyncio.sleep(COMPRESS_EVERY_S)
            while (work := self._kept.next_compression()) is not None:
                self._kept.compressed(work, await asyncio.to_thread(work.run_codec))


def refusal(frame: Frame, reason: EngineError) -> Frame:
    """The answer to HOLD, ROUTE or REPLAY of a node that does not serve now."""
    if frame.kind is Kind.HOLD:
        return message_frame(Kind.HELD, HoldReply(request=parse(frame, HoldRequest).request))
    is_route = frame.kind is Kind.ROUTE
    request = (
        parse(frame, RouteRequest).request if is_route else parse(frame, ReplayRequest).request
    )
    answer = CourseReply(request=request, refused=str(reason)[:500], code=reason.code)
    return message_frame(Kind.ROUTED if is_route else Kind.REPLAYED, answer)
