"""The swarm as a client knows it: what stages say, and how fast the routes were that it has used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from engine.client.journey import SwarmView
from engine.client.opening import link_times
from engine.client.stopwatch import Stopwatch
from engine.config import ClientConfig
from engine.core.clock import Clock
from engine.core.ids import PeerId, SessionId, short
from engine.core.model_spec import ModelSpec
from engine.core.plans import Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.micro_batches import choose_micro_batches, hop_costs
from engine.planner.observed import Cycle, Observations, believe, learned
from engine.swarm.links import Links

logger = logging.getLogger(__name__)


class Experience:
    """Answers as the view does, with what has been seen of stages in the place of what they say.

    Args:
        view: What they say.
        links: Know how far the stages are.
        spec: The model.
        config: Says how batches are divided.
        clock: Tells how old something is.
    """

    def __init__(
        self, view: SwarmView, links: Links, spec: ModelSpec, config: ClientConfig, clock: Clock
    ) -> None:
        self._view = view
        self._links = links
        self._spec = spec
        self._config = config
        self._clock = clock
        self._seen: Observations = {}

    def snapshot(self) -> SwarmSnapshot:
        """The swarm as last seen, and believed."""
        return believe(self._view.snapshot(), self._seen, self._clock.monotonic_s())

    async def refresh(self) -> SwarmSnapshot:
        """Look again now.

        Raises:
            PeerUnreachable: Nobody could be asked.
        """
        await self._view.refresh()
        return self.snapshot()

    def stopwatch(
        self,
        route: Route,
        sessions: Iterable[SessionId],
        own_rows: Callable[[], Mapping[PeerId, int]],
    ) -> Stopwatch:
        """Measures a route that is just being used, and learns from it.

        Args:
            route: The route.
            sessions: Of the batch, those that have not finished.
            own_rows: Sequences of ours that run at each stage now, all batches together.
        """
        said = self._view.snapshot()

        def report(rows: int, time_s: float) -> None:
            self._learn(route, said, rows, time_s, own_rows())

        return Stopwatch(sessions, self._clock, report)

    def _learn(
        self,
        route: Route,
        said: SwarmSnapshot,
        rows: int,
        time_s: float,
        own_rows: Mapping[PeerId, int],
    ) -> None:
        stages = []
        for hop in route.hops:
            stage = said.stage(hop.peer)
            if stage is None:
                return
            # Only what it said when it was chosen, and what we know: with rows of others that it tells
            # of while it is measured, a slow stage could excuse itself.
            ours = own_rows.get(hop.peer, 0) - rows
            stages.append(replace(stage, sessions=max(stage.sessions, ours)))
        snapshot = replace(said, stages=tuple(stages))
        link_s = link_times(self._links, snapshot)
        row_bytes = 4 * self._spec.hidden_size
        number = self._config.micro_batches
        if not number:
            number = choose_micro_batches(hop_costs(route, snapshot, link_s, row_bytes), rows)
        cycle = Cycle(route, snapshot, link_s, time_s, rows, min(number, rows), row_bytes)
        self._seen = learned(self._seen, cycle, self._clock.monotonic_s())
        logger.debug(
            "a token takes %.0f ms around %s",
            1000 * time_s,
            [short(hop.peer) for hop in route.hops],
        )
