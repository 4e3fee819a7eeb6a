"""Several chains at once for one batch: which, and how many rows each takes; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.kv_room import KvRoom
from engine.core.plans import Route
from engine.core.snapshot import SwarmSnapshot
from engine.planner.micro_batches import HopCost, choose_micro_batches, cycle_s, hop_costs
from engine.planner.routing import find_route

MAX_CHAINS = 8
LOTS = 64
"""Rows are dealt in so many lots at most."""
WORTH_IT = 1.05
"""How much faster several chains must be than the best one: each is one more that can break."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A route, and how many rows of the batch go along it."""

    route: Route
    rows: int


def disjoint_routes(
    snapshot: SwarmSnapshot,
    batch_size: int,
    *,
    row_room: KvRoom,
    link_s: Mapping[PeerId, float],
) -> tuple[Route, ...]:
    """Chains that share no peer, found one after the other, the fastest first.

    Args:
        snapshot: The swarm.
        batch_size: B rows.
        row_room: KV room that a row takes at every stage, in tokens.
        link_s: One-way time to each peer, as measured from here.

    Raises:
        NoRoute: There is not even one.
    """
    routes: list[Route] = []
    used: frozenset[PeerId] = frozenset()
    while len(routes) < min(batch_size, MAX_CHAINS):
        try:
            route = find_route(
                snapshot,
                rows=batch_size,
                need_tokens=row_room.device,
                need_ram_tokens=row_room.ram,
                avoid=used,
                link_s=link_s,
            )
        except NoRoute:
            if not routes:
                raise
            break
        routes.append(route)
        used |= {hop.peer for hop in route.hops}
    return tuple(routes)


def strangers(routes: Sequence[Route], link_s: Mapping[PeerId, float]) -> frozenset[PeerId]:
    """Stages that a batch may go through and that are unknown how far, if there are several chains.

    What is not known is assumed to be far, and would stay unknown: nobody would ever go there.

    Args:
        routes: See `disjoint_routes`.
        link_s: See there.
    """
    used = frozenset(hop.peer for route in routes for hop in route.hops)
    return used - link_s.keys() if len(routes) > 1 else frozenset()


def share_out(
    routes: Sequence[Route],
    snapshot: SwarmSnapshot,
    batch_size: int,
    *,
    row_room: KvRoom,
    link_s: Mapping[PeerId, float],
    row_bytes: int,
) -> tuple[Chain, ...]:
    """Split a batch over chains, so that all take equally long for a step.

    Each lot of rows goes where its next token would come soonest, which gives each chain rows in
    proportion to what it can do.

    Args:
        routes: See `disjoint_routes`; at least one.
        snapshot: The swarm.
        batch_size: B rows.
        row_room: KV room that a row takes at every stage, in tokens.
        link_s: One-way time to each peer, as measured from here.
        row_bytes: Hidden states of one row on the wire.

    Returns:
        The chains that get rows, the fastest first.
    """
    costs = [hop_costs(route, snapshot, link_s, row_bytes) for route in routes]
    room = [_room_rows(route, snapshot, row_room) for route in routes]
    rows = [0] * len(routes)
    lot = -(-batch_size // LOTS)
    left = batch_size
    while left:
        some = min(lot, left)
        fitting = [index for index in range(len(routes)) if rows[index] + some <= room[index]]
        # Where there is no room for them anywhere, they wait for it on the best chain.
        best = min(fitting, key=lambda i: (_step_s(costs[i], rows[i] + some), i), default=0)
        rows[best] += some
        left -= some
    alone_s = _step_s(costs[0], batch_size)
    together_s = max(_step_s(cost, n) for cost, n in zip(costs, rows, strict=True) if n)
    if batch_size <= room[0] and together_s * WORTH_IT > alone_s:
        return (Chain(routes[0], batch_size),)
    return tuple(Chain(route, n) for route, n in zip(routes, rows, strict=True) if n)


def _room_rows(route: Route, snapshot: SwarmSnapshot, row_room: KvRoom) -> int:
    """Rows for which every stage has room."""
    stages = [stage for hop in route.hops if (stage := snapshot.stage(hop.peer)) is not None]
    fit = [stage.kv_free_tokens // row_room.device for stage in stages if row_room.device]
    fit += [stage.kv_ram_free_tokens // row_room.ram for stage in stages if row_room.ram]
    return min(fit, default=0)


def _step_s(costs: list[HopCost], rows: int) -> float:
    return cycle_s(costs, rows, choose_micro_batches(costs, rows))
