"""Opening a batch's sessions at stages, with what they need not compute."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from engine.client.asking import Asker
from engine.client.batch import Sequence
from engine.client.prefixes import Beginning
from engine.config import ClientConfig
from engine.core.errors import CacheFull, PeerError, StageRefused
from engine.core.generation import PrefixUse
from engine.core.ids import PeerId
from engine.core.plans import Hop, Route
from engine.core.snapshot import SwarmSnapshot
from engine.protocol.frames import Kind
from engine.protocol.messages import (
    HopMessage,
    OpenReply,
    OpenRequest,
    SamplingMessage,
    SequenceMessage,
)


class NotOpened(PeerError):
    """Some stages did not let the sessions in.

    Args:
        error: Why, of the first one.
        peers: Which.
    """

    def __init__(self, error: PeerError | CacheFull, peers: frozenset[PeerId]) -> None:
        super().__init__(str(error))
        self.error = error
        self.peers = peers


@dataclass(frozen=True, slots=True)
class Opened:
    """What the stages answered."""

    lease_s: float
    """The shortest."""
    offers: dict[PeerId, tuple[int, ...]]
    """Per stage and sequence: first tokens with which it can begin."""


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens sessions.

    Args:
        asker: Asks the stages.
        config: Time-outs.
        model_id: The model.
    """

    asker: Asker
    config: ClientConfig
    model_id: str

    async def open(
        self,
        hops: SequenceOf[Hop],
        route: Route,
        sequences: SequenceOf[Sequence],
        begin: SequenceOf[Beginning],
        use: PrefixUse,
        *,
        attempt: int,
        pass_rows: int,
        snapshot: SwarmSnapshot,
    ) -> Opened:
        """Open the sequences at some hops of a route, at all of them or not at all.

        Raises:
            NotOpened: One of them could not be reached, or refused.
        """
        messages = tuple(
            SequenceMessage(
                session=s.session,
                capacity_tokens=s.capacity_tokens,
                prompt_tokens=s.prompt_tokens,
                sampling=SamplingMessage.of(s.sampling),
                kv_offload=self.config.kv_offload,
                prefix_digests=b.digests,
                fork_of=b.fork_of,
                fork_tokens=b.fork_tokens,
                lossy=s.lossy,
            )
            for s, b in zip(sequences, begin, strict=True)
        )
        way = hop_messages(route)

        async def open_at(hop: Hop) -> OpenReply:
            stage = snapshot.stage(hop.peer)
            request = OpenRequest(
                request=self.asker.number(),
                model_id=self.model_id,
                hops=way,
                attempt=attempt,
                pass_rows=pass_rows,
                sequences=messages,
                prefixes=use,
            )
            try:
                reply = await self.asker.ask(
                    hop.peer,
                    Kind.OPEN,
                    request,
                    OpenReply,
                    self.config.open_timeout_s,
                    () if stage is None else stage.addresses,
                )
            except PeerError as error:
                raise NotOpened(error, frozenset({hop.peer})) from error
            if reply.refused:
                full = reply.code == CacheFull.code
                refusal = CacheFull(reply.refused) if full else StageRefused(reply.refused)
                raise NotOpened(refusal, frozenset({hop.peer}))
            return reply

        results = await asyncio.gather(*map(open_at, hops), return_exceptions=True)
        replies: list[OpenReply] = []
        refusals: list[NotOpened] = []
        for result in results:
            if isinstance(result, NotOpened):
                refusals.append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                replies.append(result)
        if refusals:
            peers = frozenset[PeerId]().union(*(refusal.peers for refusal in refusals))
            raise NotOpened(refusals[0].error, peers) from refusals[0]
        offers = {}
        for hop, reply in zip(hops, replies, strict=True):
            # A stage of another version offers nothing.
            missing = len(sequences) - len(reply.reused_tokens)
            offers[hop.peer] = (*reply.reused_tokens, *[0] * missing)[: len(sequences)]
        return Opened(min((reply.lease_s for reply in replies), default=0.0), offers)


def agree(
    sequences: SequenceOf[Sequence], begin: SequenceOf[Beginning], opened: Opened
) -> list[int]:
    """Where each sequence's first row begins when all its stages are new."""
    return [
        min(
            b.agreed_tokens([offer[place] for offer in opened.offers.values()]),
            len(s.ids) - 1,
        )
        for place, (s, b) in enumerate(zip(sequences, begin, strict=True))
    ]


def hop_messages(route: Route) -> tuple[HopMessage, ...]:
    """A route on the wire."""
    return tuple(
        HopMessage(peer=hop.peer, start=hop.span.start, end=hop.span.end) for hop in route.hops
    )
