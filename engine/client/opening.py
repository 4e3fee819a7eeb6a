"""Opening a batch's sessions at stages, with what they need not compute."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from engine.client.asking import Asker
from engine.client.batch import Sequence
from engine.client.flow import HopState
from engine.client.prefixes import Beginning, beginnings
from engine.config import ClientConfig
from engine.core.errors import CacheFull, PeerError, StageRefused
from engine.core.generation import PrefixUse
from engine.core.ids import PeerId, SessionId
from engine.core.model_spec import ModelSpec
from engine.core.plans import Hop, Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.micro_batches import choose_micro_batches, hop_costs
from engine.protocol.frames import Kind
from engine.protocol.messages import (
    HopMessage,
    OpenReply,
    OpenRequest,
    SamplingMessage,
    SequenceMessage,
)
from engine.swarm.links import Links

logger = logging.getLogger(__name__)

Held = dict[Hop, dict[SessionId, HopState]]
"""How far stages are with each sequence."""


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
class Opener:
    """Opens one batch's sessions.

    Args:
        asker: Asks the stages.
        links: Know how far the stages are.
        config: Time-outs, and how to divide a batch.
        spec: The model.
        use: Whose prefixes may be taken over.
        live: Other sequences along a route.
    """

    asker: Asker
    links: Links
    config: ClientConfig
    spec: ModelSpec
    use: PrefixUse
    live: Callable[[Route], list[tuple[SessionId, list[int]]]]

    async def open(
        self,
        hops: SequenceOf[Hop],
        route: Route,
        sequences: SequenceOf[Sequence],
        attempt: int,
        snapshot: SwarmSnapshot,
    ) -> tuple[Held, float]:
        """Open the sequences at some hops of a route, at all of them or not at all.

        Returns:
            How far each hop is with each sequence from the start, and the lease in seconds.

        Raises:
            NotOpened: One of them could not be reached, or refused.
        """
        begin = self._beginnings(route, sequences, attempt)
        replies = await self._ask(hops, route, sequences, begin, attempt, snapshot)
        offers = [
            # A stage of another version offers nothing.
            (*reply.reused_tokens, *[0] * (len(sequences) - len(reply.reused_tokens)))
            for reply in replies
        ]
        if len(hops) == len(route.hops):
            # All are new: the least that one of them has is where the first row begins.
            agreed = [
                min(b.agreed_tokens([offer[place] for offer in offers]), len(s.ids) - 1)
                for place, (s, b) in enumerate(zip(sequences, begin, strict=True))
            ]
            for sequence, tokens in zip(sequences, agreed, strict=True):
                sequence.reused_tokens = tokens
            offers = [tuple(agreed)] * len(hops)
        states = {
            hop: {
                s.session: HopState(offer[place], offer[place]) for place, s in enumerate(sequences)
            }
            for hop, offer in zip(hops, offers, strict=True)
        }
        return states, max(1.0, min(reply.lease_s for reply in replies))

    async def _ask(
        self,
        hops: SequenceOf[Hop],
        route: Route,
        sequences: SequenceOf[Sequence],
        begin: SequenceOf[Beginning],
        attempt: int,
        snapshot: SwarmSnapshot,
    ) -> list[OpenReply]:
        messages = tuple(
            SequenceMessage(
                session=s.session,
                capacity_tokens=s.capacity_tokens,
                draft_tokens=s.draft_tokens,
                prune_threshold=s.prune_threshold,
                draft_sha256=s.draft_sha256,
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
        pass_rows = self._pass_rows(route, snapshot, len(sequences))
        way = hop_messages(route)

        async def open_at(hop: Hop) -> OpenReply:
            stage = snapshot.stage(hop.peer)
            request = OpenRequest(
                request=self.asker.number(),
                model_id=self.spec.model_id,
                hops=way,
                attempt=attempt,
                pass_rows=pass_rows,
                sequences=messages,
                prefixes=self.use,
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
            if reply.no_replica:
                logger.info("DISCO goes on as DSSD: %s", reply.no_replica)
            if hop == route.hops[-1]:
                for sequence in sequences:
                    has_one = sequence.draft_sha256 and not reply.no_replica
                    sequence.replica_s = reply.replica_s if has_one else math.inf
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
        return replies

    def _beginnings(
        self, route: Route, sequences: SequenceOf[Sequence], attempt: int
    ) -> list[Beginning]:
        """What the sequences need not compute, as far as we know."""
        if self.use is PrefixUse.NONE:
            return [Beginning()] * len(sequences)
        new = [(sequence.session, sequence.ids) for sequence in sequences]
        if attempt:  # another one may have failed them the first time
            return [beginnings([sequence], ())[0] for sequence in new]
        own = dict(new)
        return beginnings(new, [other for other in self.live(route) if other[0] not in own])

    def _pass_rows(self, route: Route, snapshot: SwarmSnapshot, batch_size: int) -> int:
        """Rows of a micro-batch."""
        number = self.config.micro_batches
        if not number:
            # Float32 at most; what it is exactly, only the stages know.
            row_bytes = 4 * self.spec.hidden_size
            costs = hop_costs(route, snapshot, link_times(self.links, snapshot), row_bytes)
            number = choose_micro_batches(costs, batch_size)
        return -(-batch_size // min(number, batch_size))


def hop_messages(route: Route) -> tuple[HopMessage, ...]:
    """A route on the wire."""
    return tuple(
        HopMessage(peer=hop.peer, start=hop.span.start, end=hop.span.end) for hop in route.hops
    )


def link_times(links: Links, snapshot: SwarmSnapshot) -> dict[PeerId, float]:
    """One-way time to each stage, in seconds, as far as known."""
    times = {links.local_peer: 0.0}
    for stage in snapshot.stages:
        rtt_s = links.neighbours.rtt_s(stage.peer)
        if stage.peer not in times and rtt_s is not None:
            times[stage.peer] = rtt_s / 2
    return times
