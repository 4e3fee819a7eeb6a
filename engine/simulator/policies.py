"""Who decides where nodes are: Shoal's planner, Petals' rules, or nobody after joining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.core.snapshot import SwarmSnapshot
from engine.planner import petals, rebalance
from engine.planner.announced import as_intended
from engine.planner.placement import choose_span, servers
from engine.planner.rebalance import Move


class Policy(Protocol):
    """Asked by every node for itself; it must depend on nothing but the arguments."""

    keeps_old_blocks: bool
    """Whether a node that moves serves its old blocks until it has the new ones."""
    check_every_s: float
    """Mean time between two looks of a node at its place."""

    def place(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span:
        """Where a newcomer goes."""
        ...

    def confirm(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span | None:
        """Where a node that has told its aim goes instead; None: there."""
        ...

    def move(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span | None:
        """Where a node that serves goes; None: nowhere."""
        ...


class Shoal:
    """`planner.rebalance`, as the nodes use it.

    Args:
        size: The model's, if the scenario has one.
    """

    keeps_old_blocks = True
    check_every_s = rebalance.CHECK_EVERY_S

    def __init__(self, size: ModelSize | None) -> None:
        self._size = size
        self._seen: SwarmSnapshot | None = None
        self._moves: Mapping[PeerId, Move] = {}
        """All moves in that snapshot: equal views give equal answers, so one answer is enough."""

    def place(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span:
        """See `Policy`."""
        move = rebalance.decide(snapshot, peer, max_blocks, size=self._size)
        assert move is not None, "who has no place gets one"
        return move.span

    def confirm(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span | None:
        """See `Policy`."""
        move = rebalance.decide(snapshot, peer, max_blocks, size=self._size)
        return None if move is None else move.span

    def move(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span | None:
        """See `Policy`."""
        if snapshot is not self._seen:
            self._seen = snapshot
            self._moves = rebalance.better_places(snapshot, size=self._size)
        move = self._moves.get(peer)
        return None if move is None else move.span


class JoinOnly:
    """[PT]'s joining rule, and no moves."""

    keeps_old_blocks = False
    check_every_s = 60.0

    def place(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span:
        """See `Policy`."""
        return choose_span(as_intended(snapshot), max_blocks)

    def confirm(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span | None:
        """See `Policy`."""
        return None

    def move(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span | None:
        """See `Policy`."""
        return None


class Petals(JoinOnly):
    """[PT]'s full balancing; a server that moves serves nothing until it has loaded."""

    def __init__(self) -> None:
        self._seen: SwarmSnapshot | None = None
        self._servers: Sequence[petals.Server] = ()
        self._answers: dict[PeerId, Span | None] = {}
        """In that snapshot; nothing is asked twice."""

    def move(self, snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int) -> Span | None:
        """See `Policy`."""
        if snapshot is not self._seen:
            self._seen, self._answers = snapshot, {}
            self._servers = servers(as_intended(snapshot))
        if peer not in self._answers:
            self._answers[peer] = petals.better_span(snapshot.num_blocks, self._servers, peer)
        return self._answers[peer]


NAMES: Final = ("shoal", "petals", "join")


def named(name: str, size: ModelSize | None) -> Policy:
    """One of `NAMES`.

    Args:
        name: Of the policy.
        size: The model's, if the scenario has one.
    """
    if name == "shoal":
        return Shoal(size)
    return Petals() if name == "petals" else JoinOnly()
