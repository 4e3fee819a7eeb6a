"""Questions to stages: one message there, one back, within a limit."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from engine.core.errors import PeerError, PeerUnreachable, StageTimedOut
from engine.core.ids import PeerId, short
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import Message, OpenReply, StatsReply, message_frame, parse
from engine.protocol.recovery import CourseReply, HoldReply
from engine.swarm.links import Links

_ANSWERS: dict[Kind, tuple[Kind, type[Message]]] = {
    Kind.OPEN: (Kind.OPENED, OpenReply),
    Kind.STATS: (Kind.STATS_REPLY, StatsReply),
    Kind.HOLD: (Kind.HELD, HoldReply),
    Kind.ROUTE: (Kind.ROUTED, CourseReply),
    Kind.REPLAY: (Kind.REPLAYED, CourseReply),
}


class _Numbered(Protocol):
    @property
    def request(self) -> int: ...


R = TypeVar("R", OpenReply, StatsReply, HoldReply, CourseReply)


class Asker:
    """Sends questions and matches the answers."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._numbers = itertools.count(1)
        self._waiting: dict[
            tuple[PeerId, int, Kind], tuple[asyncio.Future[Any], Callable[[], None]]
        ] = {}
        links.on({answer for answer, _ in _ANSWERS.values()}, self._on_answer)
        links.on_lost(self._on_lost)

    def number(self) -> int:
        """Names the next question."""
        return next(self._numbers)

    async def ask(
        self,
        peer: PeerId,
        kind: Kind,
        question: Message,
        expected: type[R],
        limit_s: float,
        addresses: Sequence[str] = (),
        on_answer: Callable[[], None] = lambda: None,
    ) -> R:
        """Ask, opening the link if there is none.

        Args:
            peer: Whom.
            kind: What.
            question: With a `request` from `number`.
            expected: What answers it.
            limit_s: For the link and the answer together.
            addresses: Where the peer may be reached.
            on_answer: Called as the answer arrives, before the frames behind it are handled: the
                caller goes on only after some of them.

        Raises:
            PeerUnreachable: There is no link, or it broke before the answer came.
            StageTimedOut: No answer came in time.
        """
        # Only the peer that was asked can answer, and only what it was asked for.
        numbered: _Numbered = question  # type: ignore[assignment]
        key = (peer, numbered.request, _ANSWERS[kind][0])
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting[key] = future, on_answer
        try:
            async with asyncio.timeout(limit_s):
                await self._links.connect(peer, addresses)
                self._links.send(peer, message_frame(kind, question))
                return await future
        except TimeoutError:
            raise StageTimedOut(
                f"The stage …{short(peer)} did not answer within {limit_s:.0f} s; another route "
                "will be tried."
            ) from None
        finally:
            del self._waiting[key]

    def tell(self, peers: Iterable[PeerId], kind: Kind, message: Message) -> None:
        """Send to whom it reaches."""
        for peer in peers:
            try:
                self._links.send(peer, message_frame(kind, message))
            except PeerUnreachable:
                continue  # what it holds for us lapses by itself

    def _on_answer(self, peer: PeerId, frame: Frame) -> None:
        expected = next(model for kind, model in _ANSWERS.values() if kind is frame.kind)
        answer: Any = parse(frame, expected)
        asked = self._waiting.get((peer, answer.request, frame.kind))
        if asked is None:
            return
        future, on_answer = asked
        if not future.done():
            on_answer()
            future.set_result(answer)

    def _on_lost(self, peer: PeerId, error: PeerError) -> None:
        for (asked, _, _), (future, _) in self._waiting.items():
            if asked == peer and not future.done():
                future.set_exception(error)
