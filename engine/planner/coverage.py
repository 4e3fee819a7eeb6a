"""How fast each block is served, and the moves that make the slowest one faster; pure.

A swarm is as fast as its least served block ([PT] §3.3). Moving one node seldom helps, because then
the blocks that it leaves are the slowest, so whole chains of moves are looked for: a beam search
over placements. What is compared are integers, so that equal swarms give equal moves everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from engine.core.ids import PeerId
from engine.core.plans import Span

MOVE_PRICE = 0.0032
"""By what part each move must raise the least rate in a swarm of 60, or it is not worth its download.
In one of 100 somebody comes or goes sooner, and the gain is gone; so there it costs more."""
LARGE_SWARM = 200
"""So many nodes are balanced by those that join. One move brings little, so it costs little, but is
made only when the swarm is out of balance."""
OUT_OF_BALANCE = 0.1
"""By what part the mean rate is above the least one then."""
MAX_MOVES = 8
"""In one chain."""
_STATES_TIMES_NODES = 6000
"""Placements that are followed at once, times nodes: few nodes fit together worse than many."""
_MAX_STATES = 400
_SHARPNESS = 100.0
"""A block weighs e times less for each hundredth of the mean rate that it is served better."""
_ONE = 2.0**36
"""Weight of a block at the least rate: so that sums of weights are exact in float64."""
_HEAVIEST = 2.0**42
"""Of one block, so that sums over thousands of blocks are exact, too."""
_MAX_EXPONENT = 600.0
_FROM_NOTHING = 0.05
"""Gains from less than this part of the mean rate count as gains from it."""

Floats = NDArray[np.float64]
"""Holding integers below 2^53, whose sums are exact in any order."""
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Holder:
    """A node and the blocks it holds, with what it could do elsewhere."""

    peer: PeerId
    span: Span
    rate: int
    """What it gives each of its blocks, in thousandths of a token/s."""
    length: int
    """Blocks that it would hold elsewhere, 1 to L."""
    rate_elsewhere: int
    may_move: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One move of a chain."""

    peer: PeerId
    span: Span
    is_free: bool
    """Whether this move lowers the least rate not even while nobody else has moved."""


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Moves that make the swarm faster together."""

    steps: tuple[Step, ...]
    before: int
    """Rate of the least served block, in thousandths of a token/s."""
    after: int

    @property
    def gain(self) -> float:
        """By what part the least rate rises; `inf`: from nothing."""
        return self.after / self.before - 1 if self.before else inf


def block_rates(num_blocks: int, holders: Sequence[Holder]) -> Floats:
    """What each block gets from all holders, [L], in thousandths of a token/s."""
    rates = np.zeros(num_blocks)
    for holder in holders:
        rates[holder.span.start : holder.span.end] += holder.rate
    return rates


def move_price(num_nodes: int) -> float:
    """Part of the least rate that a move must bring in a swarm of so many nodes."""
    if num_nodes > LARGE_SWARM:
        return move_price(LARGE_SWARM) * LARGE_SWARM / num_nodes
    return MOVE_PRICE * min(num_nodes, 100) / 60


def best_rearrangement(
    num_blocks: int,
    holders: Sequence[Holder],
    *,
    price: float | None = None,
    in_order: bool = True,
) -> Rearrangement | None:
    """The moves that raise the least rate most, each at its price; None: none is worth it.

    Every node moves at most once.

    Args:
        num_blocks: L.
        holders: Everyone, by peer id.
        price: Part of the least rate that each move must bring; None: `move_price`.
        in_order: Whether none of the moves, made one after the other, may lower the least rate.
    """
    if not any(holder.may_move for holder in holders):
        return None
    rates = block_rates(num_blocks, holders)
    before = int(rates.min())
    if len(holders) > LARGE_SWARM and rates.mean() <= (1 + OUT_OF_BALANCE) * before:
        return None
    search = _Search(num_blocks, holders, in_order=in_order)
    moves = search.run(move_price(len(holders)) if price is None else price)
    steps = []
    for place, start in moves:
        holder = holders[place]
        span = Span(start, start + holder.length)
        alone = rates.copy()
        alone[holder.span.start : holder.span.end] -= holder.rate
        alone[span.start : span.end] += holder.rate_elsewhere
        steps.append(Step(holder.peer, span, bool(alone.min() >= before)))
    return Rearrangement(tuple(steps), before, search.best_least) if steps else None


def best_place(num_blocks: int, holders: Sequence[Holder], newcomer: Holder) -> Span:
    """Where a newcomer raises the least rate most, with the moves that it makes worthwhile.

    Args:
        num_blocks: L.
        holders: Everyone else, by peer id.
        newcomer: With an empty span.
    """
    search = _Search(num_blocks, (*holders, newcomer), in_order=True)
    _, start = search.run(move_price(len(holders)), newcomer=len(holders))[0]
    return Span(start, start + newcomer.length)


class _Search:
    """Placements that are followed at once: W of them, n nodes, L blocks."""

    def __init__(self, num_blocks: int, holders: Sequence[Holder], *, in_order: bool) -> None:
        # By length, so that windows of one length are one slice.
        order = sorted(range(len(holders)), key=lambda place: (holders[place].length, place))
        self._order = order
        nodes = [holders[place] for place in order]
        self._in_order = in_order
        self._num_blocks = num_blocks
        self._rate = np.array([h.rate for h in nodes], dtype=np.float64)[:, None]
        self._new_length = np.array([h.length for h in nodes], dtype=np.int64)
        self._new_rate = np.array([h.rate_elsewhere for h in nodes], dtype=np.float64)[:, None]
        self._blocks = np.arange(num_blocks)
        starts = np.array([h.span.start for h in nodes], dtype=np.int64)[:, None]
        ends = np.array([h.span.end for h in nodes], dtype=np.int64)[:, None]
        self._held: Bools = (self._blocks >= starts) & (self._blocks < ends)
        """[n, L]: where each node is before anything moves."""
        new_ends = self._blocks + self._new_length[:, None]
        movable = np.array([h.may_move for h in nodes], dtype=bool)[:, None]
        stays = (self._blocks == starts) & (new_ends == ends)
        self._impossible: Bools = (new_ends > num_blocks) | ~movable | stays
        """[n, L]: node × first block."""
        area = np.maximum(
            self._rate[:, 0] * (ends - starts)[:, 0], self._new_rate[:, 0] * self._new_length
        ).sum()
        self._mean = max(1.0, float(area) / num_blocks)
        """No placement serves its least block better."""
        scale = _SHARPNESS / self._mean
        leaving = np.exp(np.minimum(self._rate * scale, _MAX_EXPONENT))
        self._leaving = np.where(self._held, leaving, 1.0)
        """[n, L]: by what weights grow when a node leaves its blocks."""
        self._coming = np.exp(-np.minimum(self._new_rate * scale, _MAX_EXPONENT))
        """[n, 1]: by what they shrink where it comes."""
        self._hash = _mixed(np.arange(1, len(nodes) * num_blocks + 1, dtype=np.uint64))
        """[n · L]: of each move; a placement's is the sum of its moves'."""
        self._room = np.empty((3, 0, len(nodes), num_blocks))
        self._sums = np.zeros((0, len(nodes), num_blocks + 1))
        """Kept, because getting memory takes longer than filling it."""
        self.best_least = 0

    def run(self, price: float, newcomer: int | None = None) -> list[tuple[int, int]]:
        """(node, first block) of each move in order; none if nothing is worth its price.

        A newcomer comes first, and in any case.
        """
        n, num_blocks = self._held.shape
        rates: Floats = (self._held * self._rate).sum(axis=0)[None]  # [W, L]
        moved: Bools = np.zeros((1, n), dtype=bool)  # [W, n]
        hashes = np.zeros(1, dtype=np.uint64)  # [W]
        least = float(rates.min())
        unit = max(least, _FROM_NOTHING * self._mean)
        width = max(1, min(_MAX_STATES, _STATES_TIMES_NODES // n))
        parents: list[tuple[Ints, Ints]] = []
        best_score, best_end = (0.0 if newcomer is None else -inf), (0, 0)
        for depth in range(1, MAX_MOVES + 1):
            if (self._mean - least) / unit - price * depth <= best_score:
                break
            weights = self._weights(rates, moved, least)
            if newcomer is not None and depth == 1:
                weights[:, np.array(self._order) != newcomer] = inf
            moves = _lightest(weights.reshape(-1), width * (16 if self._in_order else 4))
            state, cell = np.divmod(moves, n * num_blocks)
            child_hashes = hashes[state] + self._hash[cell]
            first = np.sort(np.unique(child_hashes, return_index=True)[1])
            state, cell, child_hashes = state[first], cell[first], child_hashes[first]
            children = self._children(rates[state], cell)
            leasts = children.min(axis=1)
            if self._in_order:
                kept = np.flatnonzero(leasts >= least)[:width]
            else:
                kept = np.arange(len(cell))[:width]
            if not kept.size:
                break
            parents.append((state[kept], cell[kept]))
            rates, hashes = children[kept], child_hashes[kept]
            moved = moved[state[kept]]
            moved[np.arange(len(kept)), cell[kept] // num_blocks] = True
            best = int(leasts[kept].argmax())
            score = float(leasts[kept][best] - least) / unit - price * depth
            if score > best_score:
                best_score, best_end = score, (depth, best)
                self.best_least = int(leasts[kept][best])
        return self._path(parents, *best_end)

    def _weights(self, rates: Floats, moved: Bools, least: float) -> Floats:
        """Sum of all blocks' weights after each possible move, [W, n, L]."""
        states = len(rates)
        if self._room.shape[1] < states:
            self._room = np.empty((3, states, *self._held.shape))
            self._sums = np.zeros((states, len(self._held), self._num_blocks + 1))
        left, change = self._room[:2, :states]
        out: Floats = self._room[2, :states]
        sums = self._sums[:states]
        weights = np.exp((least - rates) * (_SHARPNESS / self._mean)) * _ONE  # [W, L]
        np.multiply(weights[:, None], self._leaving, out=left)
        np.multiply(left, self._coming, out=change)
        for array in (left, change):
            np.minimum(array, _HEAVIEST, out=array)
            np.rint(array, out=array)
        change -= left
        np.cumsum(change, axis=2, out=sums[..., 1:])
        total = left.sum(axis=2, keepdims=True)
        for length in np.unique(self._new_length):
            low, high = np.searchsorted(self._new_length, [length, length + 1])
            of = slice(low, high)
            windows = out[:, of, : self._num_blocks + 1 - length]
            np.subtract(sums[:, of, length:], sums[:, of, :-length], out=windows)
            windows += total[:, of]
        out[:, self._impossible] = inf
        out[moved] = inf
        return out

    def _children(self, rates: Floats, cells: Ints) -> Floats:
        """Rates after one move each, [moves, L]."""
        node, start = np.divmod(cells, self._num_blocks)
        end = start + self._new_length[node]
        rates -= self._held[node] * self._rate[node]
        is_new = (self._blocks >= start[:, None]) & (self._blocks < end[:, None])
        rates += is_new * self._new_rate[node]
        return rates

    def _path(
        self, parents: Sequence[tuple[Ints, Ints]], depth: int, index: int
    ) -> list[tuple[int, int]]:
        path = []
        for states, cells in reversed(parents[:depth]):
            node, start = divmod(int(cells[index]), self._num_blocks)
            path.append((self._order[node], start))
            index = int(states[index])
        return path[::-1]


def _lightest(weights: Floats, count: int) -> Ints:
    """Indices of the smallest finite values, smallest first; equal ones in order."""
    if len(weights) > count:
        limit = np.partition(weights, count)[count]
        cells = np.flatnonzero(weights <= limit)
    else:
        cells = np.arange(len(weights))
    cells = cells[np.argsort(weights[cells], kind="stable")][:count]
    return cells[np.isfinite(weights[cells])]


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random but are not."""
    for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        values = values * np.uint64(factor)
        values ^= values >> np.uint64(29)
    return values
