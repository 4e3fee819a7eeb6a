"""What a client has seen of stages, which counts more than what these say of themselves; pure.

A client sees how long a token takes around a whole route, and not which stage took it. So what a route
takes longer than its stages say is laid upon them by the blocks that each computes, more upon those of
whom least is known (a Kalman filter that keeps no correlations, in the manner of Kaczmarz). One
measurement blames the honest along with the liar. So for the next route each counts as if it alone
were to blame: it leaves out whom it can, and what it takes clears some and leaves the blame with
others, until it is with those that all slow routes had in common. What a stage says of its own speed
has no part in how much it is blamed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final, TypeAlias

from engine.core.ids import PeerId
from engine.core.plans import Route
from engine.core.snapshot import StageInfo, SwarmSnapshot
from engine.planner.announced import MIN_BLOCK_S
from engine.planner.cheapest import LONGEST_S
from engine.planner.distances import Distances
from engine.planner.flow import StageTimes, step_s
from engine.planner.routing import expected_block_s

SLACK: Final = 1.15
"""A route that takes so many times as long as its stages say takes as long as they say: contexts,
other requests and lines differ."""
HOP_SLACK_S: Final = 0.005
"""What frames and queues may take at each hop besides."""
NOISE: Final = 0.05
"""Of a measurement, as a share of it."""
OPTIMISM: Final = 0.35
"""So much of the doubt in what is held against a stage counts for it: it gets another try."""
HALF_LIFE_S: Final = 86400.0
"""After which half of it is forgotten: the stage may have become faster."""
MAX_SEEN: Final = 1024
"""So many stages are remembered, those seen last."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a stage."""

    block_s: float
    """Time of one block in a pass of one row, at least what the stage says."""
    doubt_s: float
    """How wrong that may be (a standard deviation)."""
    at_s: float
    """When it was last used."""
    alone_s: float = 0.0
    """What `block_s` would be if it alone were to blame for the last slow route, until the client has
    tried another one; else 0."""


Observations: TypeAlias = Mapping[PeerId, Seen]


@dataclass(frozen=True, slots=True)
class Cycle:
    """A route's time between two tokens of one sequence, measured while it did nothing but decode."""

    route: Route
    snapshot: SwarmSnapshot
    """What its stages said when it was chosen."""
    link_s: Mapping[PeerId, float]
    """One-way time to each peer, as measured from here."""
    time_s: float
    rows: int = 1
    """B, all of which went around in that time."""
    num_micro_batches: int = 1
    """M."""
    row_bytes: int = 0
    """Hidden states of one row on the wire."""


def believe(snapshot: SwarmSnapshot, seen: Observations, now_s: float) -> SwarmSnapshot:
    """The swarm with what has been seen in the place of what is said, for routing.

    Args:
        snapshot: As announced.
        seen: What has been seen.
        now_s: The time.
    """
    if not any(stage.peer in seen for stage in snapshot.stages):
        return snapshot
    return replace(
        snapshot,
        stages=tuple(
            stage if stage.peer not in seen else _corrected(stage, seen[stage.peer], now_s)
            for stage in snapshot.stages
        ),
    )


def learned(seen: Observations, cycle: Cycle, now_s: float) -> Observations:
    """What is known after a further measurement.

    Args:
        seen: Known so far.
        cycle: The measurement.
        now_s: The time.
    """
    hops = cycle.route.hops
    stages = [stage for hop in hops if (stage := cycle.snapshot.stage(hop.peer)) is not None]
    if len(stages) < len(hops):
        return seen  # somebody says nothing of itself any more
    said_s = [_said_s(stage) for stage in stages]
    times = _times(cycle, stages)
    # What each does, in blocks of one row: no word about speed is in that.
    work = [time.pass_s / block_s for time, block_s in zip(times, said_s, strict=True)]
    found = _tried(seen, {stage.peer for stage in stages})
    usual_s = cycle.time_s / sum(work)
    before = [
        _then(found.get(stage.peer), block_s, usual_s, now_s)
        for stage, block_s in zip(stages, said_s, strict=True)
    ]
    expected_s = step_s(
        [
            replace(time, pass_s=done * known.block_s)
            for time, done, known in zip(times, work, before, strict=True)
        ],
        cycle.num_micro_batches,
    )
    missed_s = cycle.time_s - expected_s
    as_said_s = SLACK * step_s(times, cycle.num_micro_batches) + HOP_SLACK_S * len(hops)
    if missed_s > 0 and cycle.time_s <= as_said_s:
        missed_s = 0.0
    spread = (NOISE * cycle.time_s) ** 2 + sum(
        (done * known.doubt_s) ** 2 for done, known in zip(work, before, strict=True)
    )
    is_slow = missed_s > NOISE * cycle.time_s
    for stage, block_s, done, known in zip(stages, said_s, work, before, strict=True):
        gain = done * known.doubt_s**2 / spread
        # It did all its passes within that time, one after another.
        most_s = max(block_s, cycle.time_s / (cycle.num_micro_batches * done))
        found[stage.peer] = Seen(
            min(max(block_s, known.block_s + gain * missed_s), most_s),
            known.doubt_s * sqrt(1 - gain * done),
            now_s,
            min(known.block_s + missed_s / done, most_s) if is_slow else known.alone_s,
        )
    newest = sorted(found, key=lambda peer: (-found[peer].at_s, peer))[:MAX_SEEN]
    return {peer: found[peer] for peer in newest}


def _tried(seen: Observations, used: AbstractSet[PeerId]) -> dict[PeerId, Seen]:
    """What is known, less what was held against the last slow route's stages until another is tried."""
    if {peer for peer, known in seen.items() if known.alone_s} == used:
        return dict(seen)
    return {
        peer: replace(known, alone_s=0.0) if known.alone_s else known
        for peer, known in seen.items()
    }


def _then(known: Seen | None, said_s: float, usual_s: float, now_s: float) -> Seen:
    """What is still known of a stage; of one never seen, or seen long ago, hardly more than it says."""
    if known is None:
        return Seen(said_s, usual_s, now_s)
    left = _left(known, now_s)
    excess_s = max(0.0, known.block_s - said_s) * left
    doubt_s = sqrt((left * known.doubt_s) ** 2 + (1 - left**2) * usual_s**2)
    return Seen(said_s + excess_s, doubt_s, now_s, known.alone_s)


def _left(known: Seen, now_s: float) -> float:
    return float(0.5 ** (max(0.0, now_s - known.at_s) / HALF_LIFE_S))


def _corrected(stage: StageInfo, known: Seen, now_s: float) -> StageInfo:
    said_s = _said_s(stage)
    excess_s = (known.block_s - said_s) * _left(known, now_s) - OPTIMISM * known.doubt_s
    excess_s = max(excess_s, (known.alone_s - said_s) * _left(known, now_s))
    if excess_s <= 0:
        return stage
    block_s = said_s + excess_s
    slower = block_s / said_s
    return replace(
        stage,
        decode_tokens_per_s=1 / (block_s * max(1, len(stage.span))),
        decode_row_s=stage.decode_row_s * slower,
        block_s=stage.block_s * slower,
        block_row_s=stage.block_row_s * slower,
    )


def _said_s(stage: StageInfo) -> float:
    """One block in a pass of one row, by the stage's own word."""
    return _possible_s(expected_block_s(replace(stage, sessions=0)))


def _possible_s(block_s: float) -> float:
    return min(max(block_s, MIN_BLOCK_S), LONGEST_S)


def _times(cycle: Cycle, stages: Sequence[StageInfo]) -> list[StageTimes]:
    """A micro-batch at each stage and on its way from there, by what they say."""
    distances = Distances(cycle.snapshot, cycle.link_s)
    hops, rows = cycle.route.hops, -(-cycle.rows // cycle.num_micro_batches)
    times = []
    for index, (hop, stage) in enumerate(zip(hops, stages, strict=True)):
        after = hops[(index + 1) % len(hops)].peer
        pass_s = len(hop.span) * _possible_s(expected_block_s(stage, rows))
        line_s = 0.0
        if index < len(hops) - 1 and stage.uplink_bytes_per_s:
            # Nobody hides behind a line that it calls slow: routes are not chosen by lines.
            line_s = min(rows * cycle.row_bytes / stage.uplink_bytes_per_s, pass_s)
        delay_s = distances.to(hop.peer, after) if len(hops) > 1 else 0.0
        times.append(StageTimes(pass_s, line_s=line_s, delay_s=delay_s))
    return times
