"""Deals a batch to the chains that the swarm has for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from engine.client.batch import Sequence
from engine.config import ClientConfig
from engine.core.errors import NoRoute, PeerError
from engine.core.ids import PeerId
from engine.core.kv_room import KvRoom, kv_room
from engine.core.model_spec import ModelSpec
from engine.core.plans import Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.chains import disjoint_routes, share_out, strangers
from engine.swarm.links import Links

MEET_LIMIT_S = 2.0
"""A batch waits this long to learn how far stages are."""


class Dealer:
    """Knows the chains.

    Args:
        links: To the stages.
        view: The swarm, and the one-way time to each stage as far as known.
        spec: The model.
        config: Says where caches lie.
    """

    def __init__(
        self,
        links: Links,
        view: Callable[[], tuple[SwarmSnapshot, dict[PeerId, float]]],
        spec: ModelSpec,
        config: ClientConfig,
    ) -> None:
        self._links = links
        self._view = view
        self._spec = spec
        self._config = config

    async def deal(self, sequences: list[Sequence]) -> list[tuple[Route | None, list[Sequence]]]:
        """Which sequences go along which chain, those that begin alike together.

        Args:
            sequences: The batch.

        Returns:
            Without a route: all go the way that is best by the time they begin.
        """
        together: list[tuple[Route | None, list[Sequence]]] = [(None, sequences)]
        if len(sequences) <= 1:
            return together
        most = max(sequence.room_tokens for sequence in sequences)
        row_room = kv_room(most, self._config.kv_offload)
        try:
            snapshot, link_s, routes = await self._routes(len(sequences), row_room)
            new = strangers(routes, link_s)
            if new:
                await asyncio.gather(*(self._meet(snapshot, peer) for peer in new))
                snapshot, link_s, routes = await self._routes(len(sequences), row_room)
        except NoRoute:
            return together  # there may be one by the time it is needed
        chains = share_out(
            routes,
            snapshot,
            len(sequences),
            row_room=row_room,
            link_s=link_s,
            row_bytes=4 * self._spec.hidden_size,
        )
        if len(chains) == 1:
            return together
        left = deque(sorted(sequences, key=lambda sequence: sequence.ids))
        return [(chain.route, [left.popleft() for _ in range(chain.rows)]) for chain in chains]

    async def _routes(
        self, batch_size: int, row_room: KvRoom
    ) -> tuple[SwarmSnapshot, dict[PeerId, float], tuple[Route, ...]]:
        """What is known of the swarm, and the chains in it; found beside all else that goes on."""
        snapshot, link_s = self._view()
        routes = await asyncio.to_thread(
            disjoint_routes, snapshot, batch_size, row_room=row_room, link_s=link_s
        )
        return snapshot, link_s, routes

    async def _meet(self, snapshot: SwarmSnapshot, peer: PeerId) -> None:
        """Learn how far a stage is; one that does not answer counts as far."""
        stage = snapshot.stage(peer)
        with contextlib.suppress(TimeoutError, PeerError):
            async with asyncio.timeout(MEET_LIMIT_S):
                await self._links.connect(peer, () if stage is None else stage.addresses)
