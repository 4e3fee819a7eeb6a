"""What a client says to stages while it repairs a route; `engine.protocol.recovery` has the order."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine, Iterable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import Any

from engine.client.asking import Asker
from engine.client.batch import Sequence
from engine.client.flow import HopFlow, HopState
from engine.client.opening import Held, hop_messages
from engine.config import ClientConfig
from engine.core.errors import (
    PeerError,
    PeerSilent,
    PeerUnreachable,
    StageRefused,
    StageTimedOut,
)
from engine.core.ids import PeerId, SessionId, short
from engine.core.plans import Hop, Route
from engine.core.snapshot import SwarmSnapshot
from engine.protocol.frames import Kind
from engine.protocol.recovery import (
    CourseMessage,
    CourseReply,
    HoldReply,
    HoldRequest,
    ReplayRequest,
    ReplayUntil,
    RouteRequest,
)

logger = logging.getLogger(__name__)

PREFILL_TOKEN_S = 0.1
"""Patience for each token that has to be computed, or sent again, in seconds."""
REACH_S = 2.5
"""What a stage may take to reach the next one, beyond its answer."""

Flows = SequenceOf[tuple[HopFlow, ...]]
"""Per sequence, then per hop."""


class StepFailed(PeerError):
    """A stage did not do its part.

    Args:
        error: Why.
        hangs: The stage, when it did not even answer.
        parted: The stage and its next one, when that is out of its reach.
    """

    def __init__(
        self,
        error: PeerError,
        hangs: PeerId | None = None,
        parted: tuple[PeerId, PeerId] | None = None,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.hangs = hangs
        self.parted = parted


@dataclass(frozen=True, slots=True)
class Repair:
    """One attempt's messages.

    Args:
        asker: Asks the stages.
        config: Time-outs.
        attempt: Its number.
        sequences: Those that have not finished.
    """

    asker: Asker
    config: ClientConfig
    attempt: int
    sequences: SequenceOf[Sequence]

    async def hold(self, hops: SequenceOf[Hop], snapshot: SwarmSnapshot) -> dict[Hop, Held | None]:
        """Put the sequences on hold at `hops`.

        Returns:
            Per hop how far it is, empty when it does not have every sequence; None for one that is
            lost.
        """
        sessions = tuple(sequence.session for sequence in self.sequences)

        async def hold_at(hop: Hop) -> Held | None:
            stage = snapshot.stage(hop.peer)
            request = HoldRequest(
                request=self.asker.number(), attempt=self.attempt, sessions=sessions
            )
            ask = functools.partial(
                self.asker.ask,
                hop.peer,
                Kind.HOLD,
                request,
                HoldReply,
                self.config.hold_timeout_s,
                () if stage is None else stage.addresses,
            )
            try:
                try:
                    reply = await ask()
                except PeerUnreachable as error:
                    if isinstance(error, PeerSilent):
                        raise
                    reply = await ask()  # over a new link, if that which broke was an old one
            except PeerError as error:
                logger.info("…%s is lost: %s", short(hop.peer), error)
                return None
            states = {
                SessionId(held.session): HopState(held.position, held.kept_from)
                for held in reply.sessions
            }
            return {hop: states} if all(session in states for session in sessions) else {}

        answers = await asyncio.gather(*map(hold_at, hops))
        return dict(zip(hops, answers, strict=True))

    async def lead(
        self, route: Route, flows: Flows, held: Held, settled: Callable[[PeerId], None]
    ) -> None:
        """Tell every stage its new way, except new ones that simply send on what they compute.

        Args:
            route: The way.
            flows: What each stage does.
            held: Stages that were there before.
            settled: Told of each stage as it answers, before it is heard any further.

        Raises:
            StepFailed: A stage cannot go that way.
        """
        way = hop_messages(route)

        async def lead_one(place: int, hop: Hop) -> None:
            request = RouteRequest(
                request=self.asker.number(),
                attempt=self.attempt,
                hops=way,
                sessions=tuple(
                    CourseMessage(session=sequence.session, send_from=flow[place].send_from)
                    for sequence, flow in zip(self.sequences, flows, strict=True)
                ),
            )
            limit_s = self.config.hold_timeout_s + REACH_S
            # At once: a loss that a stage tells of right behind its answer has not been mended.
            on_answer = functools.partial(settled, hop.peer)
            await self._order(hop, Kind.ROUTE, request, limit_s, on_answer)

        await _all(
            lead_one(place, hop)
            for place, hop in enumerate(route.hops)
            if hop in held or (hop != route.hops[-1] and _sends_less(flows, place))
        )

    async def replay(self, route: Route, flows: Flows) -> None:
        """Let stages send on what they have kept and the next one lacks.

        Raises:
            StepFailed: A stage could not.
        """
        orders = []
        for place, hop in enumerate(route.hops):
            wanted = [
                (ReplayUntil(session=sequence.session, end=flow[place].replay_until), flow[place])
                for sequence, flow in zip(self.sequences, flows, strict=True)
                if flow[place].replay_until > flow[place].send_from
            ]
            if wanted:
                request = ReplayRequest(
                    request=self.asker.number(),
                    attempt=self.attempt,
                    sessions=tuple(until for until, _ in wanted),
                )
                tokens = sum(flow.replay_until - flow.send_from for _, flow in wanted)
                limit_s = self.config.hold_timeout_s + PREFILL_TOKEN_S * tokens
                orders.append(self._order(hop, Kind.REPLAY, request, limit_s))
        await _all(orders)

    async def _order(
        self,
        hop: Hop,
        kind: Kind,
        request: RouteRequest | ReplayRequest,
        limit_s: float,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        try:
            reply = await self.asker.ask(
                hop.peer, kind, request, CourseReply, limit_s, on_answer=on_answer
            )
        except (StageTimedOut, PeerSilent) as error:
            raise StepFailed(error, hangs=hop.peer) from error
        except PeerError as error:  # the next attempt shows whether it lives
            raise StepFailed(error) from error
        if not reply.refused:
            return
        if reply.code != PeerUnreachable.code:
            raise StepFailed(StageRefused(reply.refused))
        parted = (hop.peer, PeerId(reply.peer)) if reply.peer else None
        raise StepFailed(PeerUnreachable(reply.refused), parted=parted)


def _sends_less(flows: Flows, place: int) -> bool:
    """Whether the next stage has some of what a stage computes already."""
    return any(flow[place].send_from > flow[place].compute_from for flow in flows)


async def _all(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all steps, also when one fails; then raise what the first to fail raised."""
    results = await asyncio.gather(*steps, return_exceptions=True)
    for result in results:
        if result is not None:
            raise result
