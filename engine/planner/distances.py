"""How far stages are from each other, by what they have measured; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core.ids import PeerId
from engine.core.snapshot import SwarmSnapshot

UNKNOWN_LINK_S = 0.05
"""Assumed one-way time to a peer we have not met."""
RELAY_S = 0.03
"""What a detour through a relay adds, where nobody has measured it."""


class Distances:
    """One-way times between stages, in seconds."""

    def __init__(self, snapshot: SwarmSnapshot, from_here_s: Mapping[PeerId, float]) -> None:
        """`from_here_s` is as measured from here."""
        self._from_here_s = from_here_s
        self._behind_relays = {s.peer for s in snapshot.stages if s.is_behind_relays}
        self._link_s = snapshot.link_s

    def measured_s(self, before: PeerId, peer: PeerId) -> float | None:
        """From one stage to another, if one of them has measured it: the sender's word counts more."""
        sent_s = self._link_s.get(before, {}).get(peer)
        return self._link_s.get(peer, {}).get(before) if sent_s is None else sent_s

    def to(self, before: PeerId, peer: PeerId) -> float:
        """From one stage to another."""
        measured_s = self.measured_s(before, peer)
        if measured_s is not None:
            return measured_s
        is_relayed = before in self._behind_relays and peer in self._behind_relays
        return self._from_here_s.get(peer, UNKNOWN_LINK_S) + is_relayed * RELAY_S

    def table(
        self, peers: Sequence[PeerId], kept: Sequence[PeerId] = ()
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """From the client to each of N stages, and from each of them to each.

        Args:
            peers: The stages.
            kept: Those of them that a request uses already. The way to these costs nothing, since
                they are not to be chosen for it.

        Returns:
            [N] and [N, N], sender by row, in seconds.
        """
        place = {peer: index for index, peer in enumerate(peers)}
        relayed = [place[peer] for peer in self._behind_relays if peer in place]
        here_s = np.array([self._from_here_s.get(peer, UNKNOWN_LINK_S) for peer in peers])
        free = [place[peer] for peer in kept]
        here_s[free] = 0.0
        between_s = np.tile(here_s, (len(peers), 1))
        between_s[np.ix_(relayed, relayed)] += RELAY_S
        known = [
            (place[one], place[other], one_way_s)
            for one in peers
            for other, one_way_s in self._link_s.get(one, {}).items()
            if other in place
        ]
        if known:
            senders, receivers, times_s = zip(*known, strict=True)
            between_s[receivers, senders] = times_s
            between_s[senders, receivers] = times_s  # what the sender has measured counts more
        between_s[:, free] = 0.0
        return here_s, between_s
