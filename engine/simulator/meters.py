"""What a swarm gives, and what it could give, at one moment of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Protocol

from engine.core.errors import NoRoute
from engine.core.ids import PeerId
from engine.core.plans import Route
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.planner import pipeline
from engine.planner.distances import UNKNOWN_LINK_S
from engine.planner.observed import Cycle, Observations, believe, learned
from engine.planner.routing import find_route
from engine.simulator.bound import LeastBlockBound
from engine.simulator.scenario import Machine, Meter, Scenario

CLIENTS: Final = 8


@dataclass(frozen=True, slots=True)
class Present:
    """A node that is there now."""

    machine: Machine
    stage: StageInfo
    since_s: float


class Gauge(Protocol):
    """Measures a swarm; see `Meter`."""

    def sample(
        self, now_s: float, reload_s: float, least_tokens_per_s: float, present: Sequence[Present]
    ) -> tuple[float, float]:
        """(tokens/s, the most that would be possible), of nodes that had the time to load."""
        ...


def gauge_of(scenario: Scenario, seed: int) -> Gauge:
    """The meter that a scenario asks for."""
    if scenario.meter is Meter.PIPELINE:
        return _Pipeline(scenario)
    if scenario.meter is Meter.CLIENTS:
        return _Clients(scenario, seed)
    return _LeastBlock(scenario)


class _LeastBlock:
    def __init__(self, scenario: Scenario) -> None:
        self._num_blocks = scenario.num_blocks
        self._bound = LeastBlockBound(scenario.num_blocks)
        self._last: tuple[frozenset[PeerId], float] = (frozenset(), 0.0)

    def sample(
        self, now_s: float, reload_s: float, least_tokens_per_s: float, present: Sequence[Present]
    ) -> tuple[float, float]:
        """See `Gauge`."""
        loaded = [node.machine for node in present if node.since_s + reload_s <= now_s]
        peers = frozenset(machine.peer for machine in loaded)
        if peers != self._last[0]:
            lengths = [min(machine.max_blocks, self._num_blocks) for machine in loaded]
            offers = [
                (length, machine.tokens_per_s(length))
                for length, machine in zip(lengths, loaded, strict=True)
            ]
            self._last = peers, self._bound.tokens_per_s(offers)
        return least_tokens_per_s, self._last[1]


class _Pipeline:
    def __init__(self, scenario: Scenario) -> None:
        assert scenario.size is not None, "a pipeline has a model"
        self._size = scenario.size
        self._empty = SwarmSnapshot(scenario.name, scenario.num_blocks, link_s=scenario.link_s())

    def sample(
        self, now_s: float, reload_s: float, least_tokens_per_s: float, present: Sequence[Present]
    ) -> tuple[float, float]:
        """See `Gauge`."""
        serving = tuple(n.stage for n in present if n.stage.state is StageState.ONLINE)
        loaded = tuple(n.stage for n in present if n.since_s + reload_s <= now_s)
        best = pipeline.partition(replace(self._empty, stages=loaded), self._size)
        rate = pipeline.tokens_per_s(replace(self._empty, stages=serving), self._size)
        return rate, 0.0 if best is None else best.tokens_per_s


class _Clients:
    """A few clients, each with its own way to every node, who remember what they have used."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        rng = Random(f"{seed} clients")  # noqa: S311 - nobody gains by guessing it
        self._empty = SwarmSnapshot(scenario.name, scenario.num_blocks)
        self._link_s = [
            {machine.peer: rng.uniform(0.005, 2 * UNKNOWN_LINK_S) for machine in scenario.machines}
            for _ in range(CLIENTS)
        ]
        self._seen: list[Observations] = [{} for _ in range(CLIENTS)]

    def sample(
        self, now_s: float, reload_s: float, least_tokens_per_s: float, present: Sequence[Present]
    ) -> tuple[float, float]:
        """See `Gauge`."""
        block_s = {node.machine.peer: node.machine.block_s for node in present}
        serving = tuple(n.stage for n in present if n.stage.state is StageState.ONLINE)
        said = replace(self._empty, stages=serving)
        true = replace(said, stages=tuple(_truly(stage, block_s[stage.peer]) for stage in serving))
        total = possible = 0.0
        for client, link_s in enumerate(self._link_s):
            seen = self._seen[client]
            try:
                route = find_route(believe(said, seen, now_s), link_s=link_s)
                best = find_route(true, link_s=link_s)
            except NoRoute:
                continue
            step_s = _step_s(route, block_s, link_s)
            total += 1 / step_s
            possible += 1 / _step_s(best, block_s, link_s)
            self._seen[client] = learned(seen, Cycle(route, said, link_s, step_s), now_s)
        return total, possible


def _truly(stage: StageInfo, block_s: float) -> StageInfo:
    return replace(stage, decode_tokens_per_s=1 / (block_s * len(stage.span)))


def _step_s(route: Route, block_s: Mapping[PeerId, float], link_s: Mapping[PeerId, float]) -> float:
    return sum(len(hop.span) * block_s[hop.peer] + link_s[hop.peer] for hop in route.hops)
