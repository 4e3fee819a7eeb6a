"""How far stages are from each other, by what they have measured; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from engine.core.ids import PeerId
from engine.core.snapshot import SwarmSnapshot

UNKNOWN_LINK_S = 0.05
"""Assumed one-way time to a peer we have not met."""
RELAY_S = 0.03
"""What a detour through a relay adds, where nobody has measured it."""


class Distances:
    """One-way times between stages, in seconds."""

    def __init__(
        self,
        snapshot: SwarmSnapshot,
        from_here_s: Mapping[PeerId, float],
        kept: frozenset[PeerId] = frozenset(),
    ) -> None:
        """`kept` are stages that a request uses already; `from_here_s` is as measured from here."""
        self._from_here_s = from_here_s
        self._kept = kept
        """The way to a stage that is kept costs nothing: it is not to be chosen for it."""
        self._behind_relays = {s.peer for s in snapshot.stages if s.is_behind_relays}
        self._measured_s: dict[PeerId, dict[PeerId, float]] = defaultdict(dict)
        """To → from → one-way time; what the sender itself has measured counts more."""
        for one, times in snapshot.link_s.items():
            for other, one_way_s in times.items():
                self._measured_s[one].setdefault(other, one_way_s)
                self._measured_s[other][one] = one_way_s

    def to(self, before: PeerId | None, peer: PeerId) -> tuple[float, bool]:
        """From a stage, or from the client, to `peer`; and whether all that know no better say so.

        That is: from every stage whose own time is not measured it is this time, too, or longer.
        """
        if peer in self._kept:
            return 0.0, True
        from_here_s = self._from_here_s.get(peer, UNKNOWN_LINK_S)
        if before is None:
            return from_here_s, False
        measured_s = self._measured_s[peer].get(before)
        if measured_s is not None:
            return measured_s, False
        if before in self._behind_relays and peer in self._behind_relays:
            return from_here_s + RELAY_S, False
        return from_here_s, True

    def measured(self, peer: PeerId) -> Mapping[PeerId, float]:
        """Stages from which the way to `peer` is measured."""
        return {} if peer in self._kept else self._measured_s[peer]

    def back(self, last: PeerId, first: PeerId) -> float:
        """From the last stage to the first, less what the way from the client counted for it."""
        return self.to(last, first)[0] - self.to(None, first)[0]
