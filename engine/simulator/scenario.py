"""What a simulation is about: machines, when they are there, and what they run; frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from engine.core.ids import PeerId
from engine.core.profiles import ModelSize

DAY_S = 86_400.0


class Meter(StrEnum):
    """What tokens/s and their bound are in a scenario."""

    LEAST_BLOCK = "least block"
    """All nodes' rates at the least served block; the bound is a linear program ([PT] App. E)."""
    PIPELINE = "pipeline"
    """The planner's prediction for the route; the bound is its best plan for the same machines."""
    CLIENTS = "clients"
    """What clients get on the routes they choose; the bound is what they could get."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One node as it really is."""

    peer: PeerId
    max_blocks: int
    block_s: float
    """Time of one block, one session at a time."""
    block_row_s: float = 0.0
    """What each row more adds to that."""
    uplink_bytes_per_s: float = inf
    region: str = ""
    claims: float = 1.0
    """How many times faster it says that it is."""

    def tokens_per_s(self, length: int) -> float:
        """What it gives each of so many blocks."""
        return 1 / (length * (self.block_s + self.block_row_s))


@dataclass(frozen=True, slots=True)
class Visit:
    """One time that a machine is there."""

    machine: int
    """Its place in the scenario."""
    from_s: float
    """Below 0: it is there when the simulation begins."""
    until_s: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named experiment."""

    name: str
    about: str
    num_blocks: int
    machines: tuple[Machine, ...]
    visits: tuple[Visit, ...]
    """Of one machine they do not overlap."""
    duration_s: float = DAY_S
    meter: Meter = Meter.LEAST_BLOCK
    size: ModelSize | None = None
    """For what depends on more than rates."""
    region_link_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """One way between nodes of two regions; a pair that is not named is not measured."""
    noise: float = 0.0
    """Of a measurement of one's own speed: standard deviation, as a part of it."""
    sample_s: float = 60.0
    view_every_s: float = 5.0
    """Announcements are read so often, by everyone at once."""

    def link_s(self) -> Mapping[PeerId, Mapping[PeerId, float]]:
        """One-way times between all machines, where regions have them."""
        return {
            one.peer: {
                other.peer: self.region_link_s[one.region, other.region]
                for other in self.machines
                if other is not one and (one.region, other.region) in self.region_link_s
            }
            for one in self.machines
            if self.region_link_s
        }
