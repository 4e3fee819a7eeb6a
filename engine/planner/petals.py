"""Placement as Petals does it ([PT] §3.3, App. D): what our own planner is compared with.

Every server has one number, its throughput, wherever it is, and holds as many blocks as fit. It joins
where blocks are served worst, and moves when that would make the swarm a fifth faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.core.ids import PeerId
from engine.core.plans import Span

WORTH_A_MOVE = 0.2
"""p: by what part the swarm must gain before a server moves."""
_HAIR = 1e-3
"""A server that leaves takes a hair more than it gave, so that no two places look equal to it and
several servers do not change places for nothing."""
_MAX_ROUNDS = 20
"""Of the others' answers to a move; they settle in two or three."""


@dataclass(frozen=True, slots=True)
class Server:
    """One machine and what it holds."""

    peer: PeerId
    span: Span
    tokens_per_s: float
    """min(network, compute), the same for all of its blocks."""


def least_served(rates: NDArray[np.float64], length: int) -> int:
    """Where the worst served `length` blocks begin.

    Of all runs of blocks take the one whose rates, sorted ascending, are lexicographically least;
    ties go to the first.

    Args:
        rates: Of each block, [L], float64, tokens/s of all servers that hold it.
        length: 1 to L.
    """
    runs = np.sort(np.lib.stride_tricks.sliding_window_view(rates, length), axis=1)
    starts = np.arange(len(runs))
    for place in range(length):
        column = runs[starts, place]
        starts = starts[column == column.min()]
        if len(starts) == 1:
            break
    return int(starts[0])


def block_rates(num_blocks: int, servers: Iterable[Server]) -> NDArray[np.float64]:
    """Tokens/s of each block, [L], float64.

    Summed in the order of peer ids, so that equal swarms have equal rates to the last bit.
    """
    rates = np.zeros(num_blocks)
    for server in sorted(servers, key=lambda server: server.peer):
        rates[server.span.start : server.span.end] += server.tokens_per_s
    return rates


def join(
    num_blocks: int, servers: Sequence[Server], peer: PeerId, max_blocks: int, tokens_per_s: float
) -> Server:
    """A newcomer, at the blocks that the others serve worst.

    Args:
        num_blocks: L.
        servers: The others.
        peer: The newcomer.
        max_blocks: What fits there, at least 1; more than L counts as L.
        tokens_per_s: Its throughput.
    """
    length = min(max_blocks, num_blocks)
    start = least_served(block_rates(num_blocks, servers), length)
    return Server(peer, Span(start, start + length), tokens_per_s)


def better_span(
    num_blocks: int, servers: Sequence[Server], peer: PeerId, gain: float = WORTH_A_MOVE
) -> Span | None:
    """Where `peer` should move, or None: the periodic check of every server.

    It looks where it would join now, lets all others answer until nobody moves, and goes only if the
    least served block has then gained enough. It stays, too, where leaving would leave a gap.

    Args:
        num_blocks: L.
        servers: All, `peer` among them.
        peer: Who asks.
        gain: p.
    """
    rates = block_rates(num_blocks, servers)
    before = rates.min()
    if (1 + gain) * before > rates.mean():
        return None  # no placement is better than an even one
    own = next(server for server in servers if server.peer == peer)
    if before > 0 and _without(rates, own).min() <= _HAIR * own.tokens_per_s:
        return None
    moved = _rejoined(rates, own)
    if moved.span == own.span:
        return None
    others = {server.peer: server for server in servers} | {peer: moved}
    rates = block_rates(num_blocks, others.values())
    for _ in range(_MAX_ROUNDS):
        is_settled = True
        for other in sorted(others):
            server = _rejoined(rates, others[other])
            if server.span != others[other].span:
                _add(rates, others[other], -1.0)
                _add(rates, server, 1.0)
                others[other] = server
                is_settled = False
        if is_settled:
            break
    after = rates.min()
    return moved.span if after > 0 and after >= (1 + gain) * before else None


def settle(
    num_blocks: int, servers: Sequence[Server], gain: float = WORTH_A_MOVE
) -> tuple[Server, ...]:
    """Let one server after the other check and move, until none wants to.

    Args:
        num_blocks: L.
        servers: As they have joined.
        gain: p.
    """
    placed = {server.peer: server for server in servers}
    for _ in range(_MAX_ROUNDS):
        moves = 0
        for peer in sorted(placed):
            span = better_span(num_blocks, tuple(placed.values()), peer, gain)
            if span is not None:
                placed[peer] = replace(placed[peer], span=span)
                moves += 1
        if not moves:
            break
    return tuple(placed[server.peer] for server in servers)


def _without(rates: NDArray[np.float64], server: Server) -> NDArray[np.float64]:
    rest = rates.copy()
    _add(rest, server, -(1 + _HAIR))
    return rest


def _rejoined(rates: NDArray[np.float64], server: Server) -> Server:
    start = least_served(_without(rates, server), len(server.span))
    return replace(server, span=Span(start, start + len(server.span)))


def _add(rates: NDArray[np.float64], server: Server, sign: float) -> None:
    rates[server.span.start : server.span.end] += sign * server.tokens_per_s
