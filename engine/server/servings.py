"""The workers that serve this node's blocks: one, or two while it moves from some to others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.core.errors import StageRefused
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Route
from engine.server.recovery import Recovery
from engine.server.serving import Serving
from engine.server.worker_process import LoadOrder


class Servings:
    """Finds who has a session: it is with one of them, and stays there."""

    def __init__(self, local_peer: PeerId) -> None:
        self._local_peer = local_peer
        self._all: list[Serving] = []

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Serving]:
        return iter(tuple(self._all))

    @property
    def announced(self) -> Serving | None:
        """The one that the swarm hears of."""
        return self._all[0] if self._all else None

    def add(self, serving: Serving) -> None:
        """Begin to serve; what was there before stays announced."""
        self._all.append(serving)

    def remove(self, serving: Serving) -> None:
        """End."""
        self._all.remove(serving)

    def lead_with(self, order: LoadOrder) -> None:
        """Let these be the blocks that are announced."""
        self._all.sort(key=lambda serving: serving.order is not order)

    def holder(self, session: SessionId) -> Serving | None:
        """Who has a session."""
        for serving in self._all:  # asked of every row
            if serving.table.get(session) is not None:
                return serving
        return None

    def for_route(self, route: Route) -> Serving:
        """Who takes new sessions along a route; who refuses them, where nobody holds its blocks.

        Raises:
            StageRefused: Nobody takes any.
        """
        willing = [serving for serving in self._all if not serving.is_draining]
        if not willing:
            raise StageRefused("This stage is about to pause and takes no new requests.")
        ours = [hop.span for hop in route.hops if hop.peer == self._local_peer]
        fitting = (s for s in willing if any(s.table.span.covers(span) for span in ours))
        return next(fitting, willing[0])

    def recovery_of(self, sessions: Iterable[int]) -> Recovery:
        """Of sessions that were opened together, and so are together; there must be a worker."""
        holders = (self.holder(SessionId(session)) for session in sessions)
        return next((h for h in holders if h is not None), self._all[0]).recovery
