"""Whether a node should hold other blocks than it does, and which.

Everyone computes the same from the same view, so everyone finds its own move in the plan that all
have made. A swarm of about one pipeline follows the exact partition (`planner.pipeline`); in a
larger one whoever can be spared goes where blocks are served least (`planner.coverage`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.core.sentences import Sentence
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.planner import coverage, pipeline
from engine.planner.announced import as_intended
from engine.planner.coverage import Holder, Rearrangement, block_rates
from engine.planner.petals import WORTH_A_MOVE
from engine.planner.placement import choose_span, tokens_per_s

CHECK_EVERY_S = 15.0
"""Mean time between two looks of a node at its place; to look costs a large swarm's node 0.1 s."""
STEADY_WITHIN = 0.06
"""Measurements that differ by less than this part are the same: their noise must move nobody."""
_PER_TOKEN = 1000
"""Rates are compared in whole thousandths of a token/s."""


@dataclass(frozen=True, slots=True)
class Move:
    """New blocks for one node."""

    span: Span
    reason: Sentence
    """For the node's owner."""
    gain: float
    """By what part the swarm becomes faster; `inf`: from nothing."""


def decide(
    snapshot: SwarmSnapshot,
    peer: PeerId,
    max_blocks: int,
    *,
    size: ModelSize | None = None,
    min_gain: float = WORTH_A_MOVE,
) -> Move | None:
    """Say which blocks `peer` should go to, if it should.

    One question for every occasion:

    - `peer` has no stage in the snapshot: it joins, and gets a move in any case.
    - Its stage is JOINING, or has a `next_span`: it has told its intent, and asks again when the
      others have had time to see it. None: go on. A move: a peer with a lower id had the same aim,
      or the swarm has changed; announce the new intent and ask again, or stay, if it is the old
      place.
    - Its stage is ONLINE: the periodic check. None: stay.

    Others that are JOINING or have a `next_span` count as if they were there.

    Args:
        snapshot: The swarm.
        peer: Who asks.
        max_blocks: Blocks that fit there, at least 1.
        size: The model's, for the exact partition of a small swarm; None: it is placed like a
            large one.
        min_gain: By what part the swarm must gain before nodes move that it cannot spare where they
            are ([PT] App. D); for the others each move has a price.

    Raises:
        ValueError: `max_blocks` is below 1.
    """
    if max_blocks < 1:
        raise ValueError(f"max_blocks must be at least 1, not {max_blocks}")
    own = snapshot.stage(peer)
    if own is None:
        return _join(snapshot, peer, max_blocks, size)
    if own.next_span is not None or own.state is StageState.JOINING:
        return _confirm(snapshot, own, max_blocks, size, min_gain)
    if own.state is not StageState.ONLINE:
        return None
    return better_places(snapshot, size=size, min_gain=min_gain).get(peer)


def better_places(
    snapshot: SwarmSnapshot, *, size: ModelSize | None = None, min_gain: float = WORTH_A_MOVE
) -> Mapping[PeerId, Move]:
    """All moves that nodes which serve should make now; what `decide` looks into.

    Args:
        snapshot: The swarm.
        size: See `decide`.
        min_gain: See `decide`.
    """
    snapshot = as_intended(snapshot)
    num_blocks = snapshot.num_blocks
    holders = _holders(snapshot)
    if not holders:
        return {}
    is_small = size is not None and sum(h.length for h in holders) < 2 * num_blocks
    is_gap = block_rates(num_blocks, holders).min() <= 0
    if is_small and size is not None and not is_gap:
        return _towards_partition(snapshot, size, min_gain)
    chain = coverage.best_rearrangement(num_blocks, holders)
    if chain is None and is_gap and size is not None:
        return _towards_partition(snapshot, size, min_gain)
    if chain is None:
        chain = coverage.best_rearrangement(num_blocks, holders, price=min_gain, in_order=False)
    if chain is None:
        return {}
    # The others wait until those have moved whom nobody misses: by then there may be a better way.
    everyone = chain.gain >= min_gain
    return {
        step.peer: Move(step.span, _why(chain), chain.gain)
        for step in chain.steps
        if everyone or step.is_free
    }


def wait_s(rng: Random, every_s: float) -> float:
    """Time until the next check: `every_s` on average, and so spread that no two nodes keep step.

    Args:
        rng: The node's own.
        every_s: Mean time between two checks.
    """
    return rng.uniform(0.5, 1.5) * every_s


def steady(announced: float, measured: float) -> float:
    """What to announce after a new measurement: the old value, unless it is clearly another one.

    Args:
        announced: What was announced last; 0: nothing yet.
        measured: The same quantity, measured again.
    """
    return announced if abs(measured - announced) <= STEADY_WITHIN * announced else measured


def _join(snapshot: SwarmSnapshot, peer: PeerId, max_blocks: int, size: ModelSize | None) -> Move:
    snapshot = as_intended(snapshot)
    length = min(max_blocks, snapshot.num_blocks)
    own = StageInfo(
        peer, Span(0, length), StageState.JOINING, 0, 0.0, (), "", max_blocks=max_blocks
    )
    with_own = replace(snapshot, stages=(*snapshot.stages, own))
    span = _planned(with_own, peer, size)
    if span is not None:
        return Move(
            span,
            Sentence(
                "With this node, the fastest pipeline has blocks {span} here.", span=str(span)
            ),
            0.0,
        )
    span = _place(snapshot, own, max_blocks)
    return Move(span, Sentence("The swarm needs blocks {span} most.", span=str(span)), 0.0)


def _place(others: SwarmSnapshot, own: StageInfo, max_blocks: int) -> Span:
    """Where a node should go that is not among these yet."""
    holders = _holders(others)
    if len(holders) > coverage.LARGE_SWARM:
        return choose_span(others, max_blocks)
    length = min(max_blocks, others.num_blocks)
    newcomer = Holder(own.peer, Span(0, 0), 0, length, _rate(own, length))
    return coverage.best_place(others.num_blocks, holders, newcomer)


def _confirm(
    snapshot: SwarmSnapshot,
    own: StageInfo,
    max_blocks: int,
    size: ModelSize | None,
    min_gain: float,
) -> Move | None:
    """Whether the aim is still the best one, if those with the same aim and lower ids go first."""
    aim = own.next_span or own.span
    before = _first(snapshot, own, aim)
    if own.next_span is None:
        planned = _planned(as_intended(snapshot), own.peer, size)
        span = planned or _place(before, own, max_blocks)
        return (
            None
            if span == aim
            else Move(
                span, Sentence("By now the swarm needs blocks {span} more.", span=str(span)), 0.0
            )
        )
    before = replace(before, stages=(*before.stages, replace(own, next_span=None)))
    move = better_places(before, size=size, min_gain=min_gain).get(own.peer)
    if move is None:
        return Move(own.span, Sentence("By now the swarm needs nobody to move."), 0.0)
    return None if move.span == aim else move


def _first(snapshot: SwarmSnapshot, own: StageInfo, aim: Span) -> SwarmSnapshot:
    """The others, where those with higher ids and this aim have not told it."""
    stages = []
    for stage in snapshot.stages:
        there = stage.next_span or stage.span
        is_apart = there.end <= aim.start or there.start >= aim.end
        if stage.peer == own.peer:
            continue
        if stage.peer < own.peer or is_apart:
            stages.append(stage)
        elif stage.state is StageState.ONLINE:
            stages.append(replace(stage, next_span=None))
    return as_intended(replace(snapshot, stages=tuple(stages)))


def _planned(snapshot: SwarmSnapshot, peer: PeerId, size: ModelSize | None) -> Span | None:
    """What the exact partition gives a node; None: the swarm is large, or needs it not."""
    total = sum(holder.length for holder in _holders(snapshot))
    if size is None or total >= 2 * snapshot.num_blocks:
        return None
    found = pipeline.partition(snapshot, size)
    return None if found is None else found.spans.get(peer)


def _towards_partition(
    snapshot: SwarmSnapshot, size: ModelSize, min_gain: float
) -> Mapping[PeerId, Move]:
    found = pipeline.partition(snapshot, size)
    if found is None:
        return {}
    now = pipeline.tokens_per_s(snapshot, size)
    gain = found.tokens_per_s / now - 1 if now else inf
    if gain < min_gain:
        return {}
    if now:
        why = Sentence(
            "The fastest pipeline of all {nodes} nodes is {percent}% faster than what there is.",
            nodes=len(found.spans),
            percent=round(100 * gain),
        )
    else:
        why = Sentence(
            "The fastest pipeline of all {nodes} nodes covers every block.", nodes=len(found.spans)
        )
    return {
        stage.peer: Move(found.spans[stage.peer], why, gain)
        for stage in snapshot.stages
        if stage.state is StageState.ONLINE
        and stage.peer in found.spans
        and found.spans[stage.peer] != stage.span
    }


def _holders(snapshot: SwarmSnapshot) -> Sequence[Holder]:
    """Those that serve or soon will, by peer id."""
    out = []
    for stage in sorted(snapshot.stages, key=lambda stage: stage.peer):
        if stage.state not in (StageState.ONLINE, StageState.JOINING) or not len(stage.span):
            continue
        end = min(stage.span.end, snapshot.num_blocks)
        length = min(stage.max_blocks or len(stage.span), snapshot.num_blocks)
        out.append(
            Holder(
                stage.peer,
                Span(min(stage.span.start, end), end),
                _rate(stage, len(stage.span)),
                length,
                _rate(stage, length),
                may_move=stage.state is StageState.ONLINE,
            )
        )
    return out


def _rate(stage: StageInfo, length: int) -> int:
    return max(1, round(tokens_per_s(stage, length) * _PER_TOKEN))


def _why(chain: Rearrangement) -> Sentence:
    if not chain.before:
        return Sentence("Some blocks were served by nobody; now all are.")
    percent = round(100 * chain.gain, 1)
    if len(chain.steps) == 1:
        return Sentence(
            "The least served block becomes {percent}% faster by one move.", percent=percent
        )
    return Sentence(
        "The least served block becomes {percent}% faster by {moves} moves.",
        percent=percent,
        moves=len(chain.steps),
    )
