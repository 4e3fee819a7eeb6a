"""Messages with which a client repairs its route, and stages tell that something is wrong with it.

A repair goes: HOLD to every stage that may live → OPEN at those that take the place of lost ones →
ROUTE to whom the way has changed → REPLAY to those whose next stage lacks what they have kept →
STEP with ids. Each step is answered before the next begins, so no row of the new attempt travels
before its whole way is ready.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from engine.core.ids import PeerId, SessionId
from engine.core.plans import Hop, Route, Span
from engine.protocol.messages import HopMessage, Message

_U64 = Annotated[int, Field(ge=0, lt=1 << 64)]
_Attempt = Annotated[int, Field(ge=0, lt=1 << 16)]
_Position = Annotated[int, Field(ge=0, lt=1 << 31)]
_OptionalPeer = Annotated[str, Field(max_length=128)]

DRAINING = "draining"
"""Code of a NOTICE: the stage will end soon; go elsewhere if you can."""
MOVED = "moved"
"""Code of a NOTICE: the node holds other blocks now, and serves these until you are elsewhere."""
ROWS_MISSING = "rows_missing"
"""Code of a NOTICE: rows from `peer` did not follow on those before them."""
DRAFT_REFUSED = "draft_refused"
"""Code of a NOTICE: a draft made no sense; what was computed before it stands."""


class Notice(Message):
    """NOTICE, stage → client: the sessions live on here, but their way is broken or will be."""

    sessions: tuple[_U64, ...] = Field(max_length=4096)
    attempt: _Attempt
    """Theirs when it happened: what a repair has mended since needs no other."""
    code: str = Field(max_length=64)
    """Of the error on the link to `peer`, or `DRAINING`, `MOVED`, `ROWS_MISSING` or `DRAFT_REFUSED`."""
    peer: _OptionalPeer = ""
    """The neighbour, if it is about one."""
    start: int = Field(default=0, ge=0, lt=4096)
    end: int = Field(default=0, ge=0, le=4096)
    """With `MOVED`: the blocks that the sender holds now."""
    reason: str = Field(max_length=512)


class HoldRequest(Message):
    """HOLD, client → stage: a new attempt begins; drop what waits, and say how far you are."""

    request: _U64
    attempt: _Attempt
    sessions: tuple[_U64, ...] = Field(min_length=1, max_length=4096)

    def ids(self) -> tuple[SessionId, ...]:
        """Typed."""
        return tuple(SessionId(session) for session in self.sessions)


class HeldSession(Message):
    """How far one session is."""

    session: _U64
    position: _Position
    """Tokens computed whose outputs have been handed on."""
    kept_from: _Position
    """The outputs of all tokens from here to `position` can be replayed."""


class HoldReply(Message):
    """HELD, stage → client: sessions that are not listed are not here, or not yours."""

    request: _U64
    sessions: tuple[HeldSession, ...] = Field(default=(), max_length=4096)
    lease_s: float = Field(default=0.0, ge=0)


class CourseMessage(Message):
    """One session's way on from a stage."""

    session: _U64
    send_from: _Position
    """The next stage needs outputs from this token on."""


class RouteRequest(Message):
    """ROUTE, client → stage: where sessions on hold, or just opened, go from now on."""

    request: _U64
    attempt: _Attempt
    hops: tuple[HopMessage, ...] = Field(min_length=1, max_length=256)
    sessions: tuple[CourseMessage, ...] = Field(min_length=1, max_length=4096)

    def route(self) -> Route:
        """The route that the sessions will take."""
        return Route(tuple(Hop(PeerId(hop.peer), Span(hop.start, hop.end)) for hop in self.hops))


class ReplayUntil(Message):
    """What to replay of one session."""

    session: _U64
    end: _Position
    """From where ROUTE said to send, up to here."""


class ReplayRequest(Message):
    """REPLAY, client → stage: send the next stage what you have kept for it."""

    request: _U64
    attempt: _Attempt
    sessions: tuple[ReplayUntil, ...] = Field(min_length=1, max_length=4096)


class CourseReply(Message):
    """ROUTED and REPLAYED, stage → client: done, or `refused` says why not."""

    request: _U64
    refused: str = Field(default="", max_length=512)
    code: str = Field(default="", max_length=64)
    peer: _OptionalPeer = ""
    """The next stage, when it is that which cannot be reached."""
