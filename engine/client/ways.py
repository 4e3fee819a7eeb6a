"""Through which stages a batch may go: what it has learnt of them on its way."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence as SequenceOf
from collections.abc import Set as AbstractSet
from dataclasses import replace

from engine.client.batch import Sequence
from engine.client.opening import Held, link_times
from engine.config import ClientConfig
from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.kv_room import kv_room
from engine.core.plans import Route, Span
from engine.core.snapshot import SwarmSnapshot
from engine.planner.routing import find_route
from engine.swarm.links import Links


class Ways:
    """Finds a batch's routes.

    Args:
        links: Know how far the stages are.
        config: Says where caches lie.
        first: The route to begin with; None: the best one.
    """

    def __init__(self, links: Links, config: ClientConfig, first: Route | None) -> None:
        self._links = links
        self._config = config
        self._first = first
        self.avoid: set[PeerId] = set()
        """Peers that have just failed us."""
        self.leaving: set[PeerId] = set()
        """Stages that still serve, but better others did."""
        self.moved: dict[PeerId, Span] = {}
        """Nodes that hold other blocks now, these, and serve us with the old ones until we leave."""
        self._broken: set[tuple[PeerId, PeerId]] = set()
        """Pairs of stages that cannot reach each other."""

    @property
    def left(self) -> set[PeerId]:
        """Where the batch should not stay."""
        return self.leaving | self.moved.keys()

    def part(self, one: PeerId, other: PeerId) -> None:
        """Two stages cannot reach each other."""
        self._broken |= {(one, other), (other, one)}

    def give_all_another_chance(self) -> bool:
        """Forget who failed; they may be the only ones there are. Whether there were any."""
        had_any = bool(self.avoid or self._broken)
        self.avoid.clear()
        self._broken.clear()
        return had_any

    def refused(self, peers: AbstractSet[PeerId]) -> None:
        """Stages did not let the batch in; who only had no room at its new blocks keeps us so far."""
        self.avoid |= peers - self.moved.keys()
        for peer in peers & self.moved.keys():
            del self.moved[peer]

    def settled(self, held: Held) -> None:
        """The batch goes its way, with its sessions at these stages as they were before."""
        staying = {hop.peer for hop in held}
        self.moved = {peer: span for peer, span in self.moved.items() if peer in staying}

    def find(
        self, snapshot: SwarmSnapshot, held: Held, waiting: SequenceOf[Sequence]
    ) -> tuple[Route, Held]:
        """The best route now, and the stages of it that keep their sessions.

        Raises:
            NoRoute: There is none.
        """
        if self._first is not None:
            first, self._first = self._first, None
            return first, held
        if self.left:
            with contextlib.suppress(NoRoute):
                return self._find_around(snapshot, held, waiting)
        return self._find(snapshot, held, waiting), held

    def has_way_around(
        self, old: Route, snapshot: SwarmSnapshot, waiting: SequenceOf[Sequence]
    ) -> bool:
        """Whether there is a route without those that should be left."""
        try:
            self._find_around(snapshot, {hop: {} for hop in old.hops}, waiting)
        except NoRoute:
            return False
        return True

    def _find_around(
        self, snapshot: SwarmSnapshot, held: Held, waiting: SequenceOf[Sequence]
    ) -> tuple[Route, Held]:
        held = {hop: states for hop, states in held.items() if hop.peer not in self.left}
        blocks = Span(0, snapshot.num_blocks)
        stages = tuple(  # their announcements may not have come yet
            replace(stage, span=span)
            if blocks.covers(span := self.moved.get(stage.peer, stage.span))
            else stage
            for stage in snapshot.stages
        )
        return self._find(replace(snapshot, stages=stages), held, waiting, self.leaving), held

    def _find(
        self,
        snapshot: SwarmSnapshot,
        held: Held,
        waiting: SequenceOf[Sequence],
        leaving: AbstractSet[PeerId] = frozenset(),
    ) -> Route:
        rooms = [kv_room(s.room_tokens, self._config.kv_offload) for s in waiting]
        return find_route(
            snapshot,
            rows=len(waiting),
            need_tokens=sum(room.device for room in rooms),
            need_ram_tokens=sum(room.ram for room in rooms),
            avoid=frozenset(self.avoid | leaving),
            link_s=link_times(self._links, snapshot),
            kept=list(held),
            broken=frozenset(self._broken),
        )
