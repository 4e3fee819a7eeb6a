"""The named experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import cos, inf, pi
from random import Random
from typing import Final

from engine.core.errors import ConfigError
from engine.core.ids import PeerId
from engine.core.profiles import ModelSize
from engine.simulator.daily import daily_visits
from engine.simulator.scenario import DAY_S, Machine, Meter, Scenario, Visit

BLOOM_BLOCKS: Final = 70
BLOOM_CARDS: Final = {5: 0.10, 7: 0.20, 10: 0.25, 15: 0.30, 27: 0.05, 32: 0.05, 54: 0.05}
"""Blocks of BLOOM-176B in 4 bits (1.4 GB) on cards of 8, 11, 16, 24, 40, 48 and 80 GB, and how many
servers of a hundred have such a card."""
BLOOM_TOKENS_PER_S: Final = (30.0, 100.0)
"""min(network, compute) of a server, uniform: home lines make it independent of the card."""
MODELS: Final = {
    "llama-30b": ModelSize(60, 6656, 2, 1_060_000_000, 426_000_000, 426_000_000, 26_624),
    "llama-70b": ModelSize(80, 8192, 2, 1_710_000_000, 524_000_000, 524_000_000, 4_096),
}


def build(name: str, seed: int) -> Scenario:
    """Make a named scenario.

    Args:
        name: One of `NAMES`.
        seed: Of everything in it that is drawn.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in _BUILDERS:
        raise ConfigError(
            f"There is no scenario {name!r} to simulate; choose one of {', '.join(NAMES)}."
        )
    return _BUILDERS[name](name, Random(f"{seed} {name}"))  # noqa: S311 - nobody gains by guessing it


def petals_206(name: str, rng: Random) -> Scenario:
    """[PT] App. E: 206 servers, 100–110 of them at the peak and 15–25 in the trough of a day.

    What the paper leaves open: each server comes about once a day, and memory and rates are drawn
    so that joining alone and Petals' balancing reach the shares of the bound known for them.
    """
    return daily_swarm(
        name,
        "206 servers come and go through a day ([PT] App. E).",
        rng,
        num_machines=206,
        peak=105,
        trough=20,
    )


def daily_swarm(
    name: str,
    about: str,
    rng: Random,
    *,
    num_machines: int,
    peak: int,
    trough: int,
) -> Scenario:
    """Servers for BLOOM-176B with a daily cycle of activity.

    Args:
        name: Of the scenario.
        about: The same in a sentence.
        rng: Draws machines and visits.
        num_machines: All there are; each comes about once a day.
        peak: Machines at the busiest time, in the middle.
        trough: Machines at the beginning and the end.
    """
    machines = tuple(_bloom_server(rng, index) for index in range(num_machines))
    half, middle = (peak - trough) / 2, (peak + trough) / 2

    def wanted(at_s: float) -> int:
        return round(middle - half * cos(2 * pi * at_s / DAY_S))

    visits = daily_visits(rng, num_machines, wanted)
    return Scenario(name, about, BLOOM_BLOCKS, machines, visits)


def flash_crowd(name: str, rng: Random) -> Scenario:
    """30 servers, and 270 more that come within ten minutes and leave within ten, two hours later."""
    machines = tuple(_bloom_server(rng, index) for index in range(300))
    visits = [Visit(index, -1.0, inf) for index in range(30)]
    visits += [
        Visit(index, 3600 + rng.uniform(0, 600), 3 * 3600 + rng.uniform(0, 600))
        for index in range(30, 300)
    ]
    return Scenario(
        name,
        "270 servers join 30 within ten minutes, and leave two hours later.",
        BLOOM_BLOCKS,
        machines,
        tuple(visits),
        duration_s=5 * 3600,
    )


def region_lost(name: str, rng: Random) -> Scenario:
    """Four regions of 25 servers; one of them is cut off for an hour."""
    regions = ("America", "Asia", "Europe", "Oceania")
    machines = tuple(_bloom_server(rng, index, region) for index, region in enumerate(regions * 25))
    lost_s, back_s = 3600.0, 7200.0
    visits = []
    for index, machine in enumerate(machines):
        if machine.region == regions[0]:
            visits += [Visit(index, -1.0, lost_s), Visit(index, back_s + rng.uniform(0, 60), inf)]
        else:
            visits.append(Visit(index, -1.0, inf))
    return Scenario(
        name,
        "100 servers in four regions, one of which is cut off for an hour.",
        BLOOM_BLOCKS,
        machines,
        tuple(visits),
        duration_s=3 * 3600,
    )


def liar(name: str, rng: Random) -> Scenario:
    """30 nodes, three of which say that they are ten times as fast as they are."""
    machines = tuple(
        Machine(
            _peer(index),
            max_blocks=rng.choice((8, 10, 16)),
            block_s=rng.uniform(0.002, 0.006) * (2 if index < 3 else 1),
            claims=10.0 if index < 3 else 1.0,
        )
        for index in range(30)
    )
    return Scenario(
        name,
        "3 of 30 nodes are slow and say that they are ten times as fast.",
        32,
        machines,
        tuple(Visit(index, -1.0, inf) for index in range(30)),
        duration_s=4 * 3600,
        meter=Meter.CLIENTS,
        sample_s=60.0,
    )


def jitter(name: str, rng: Random) -> Scenario:
    """40 servers that stay for a day, whose measurements of themselves differ by a hundredth."""
    return Scenario(
        name,
        "40 servers stay for a day; what they measure of themselves differs by 1 % each time.",
        BLOOM_BLOCKS,
        tuple(_bloom_server(rng, index) for index in range(40)),
        tuple(Visit(index, -1.0, inf) for index in range(40)),
        noise=0.01,
        sample_s=300.0,
    )


def two_thousand(name: str, rng: Random) -> Scenario:
    """Many more than today's swarms have; so many announcements are read only once a minute."""
    scenario = daily_swarm(
        name,
        "2,400 servers come and go through a day, up to 2,000 at once.",
        rng,
        num_machines=2400,
        peak=2000,
        trough=400,
    )
    return replace(scenario, sample_s=300.0, view_every_s=60.0)


def bloombee(name: str, rng: Random) -> Scenario:
    """LLaMA-30B on the machines of [BB] §8 over one of its links; one machine leaves for an hour.

    An A100 (40 GB) and two RTX 4090 (24 GB), and one 4090 more after an hour, which takes over while
    another one is away.
    """
    environment = name.removeprefix("bloombee-")
    cards = (("A100", 32, 0.0032, 2e-5), *(("4090", 18, 0.0040, 3e-5),) * 3)
    sites = ("California", "New Jersey", "Canada", "New Jersey")
    uplink_bytes_per_s, delays = _BLOOMBEE_LINKS[environment]
    machines = tuple(
        Machine(
            PeerId(f"{index}-{card}"),
            max_blocks,
            block_s * rng.uniform(0.97, 1.03),
            row_s,
            uplink_bytes_per_s.get(site, uplink_bytes_per_s[""]),
            site,
        )
        for index, ((card, max_blocks, block_s, row_s), site) in enumerate(
            zip(cards, sites, strict=True)
        )
    )
    hour_s = 3600.0
    visits = (
        Visit(0, -1.0, inf),
        Visit(1, -1.0, 2 * hour_s),
        Visit(1, 3 * hour_s, inf),
        Visit(2, -1.0, inf),
        Visit(3, hour_s, inf),
    )
    return Scenario(
        name,
        f"LLaMA-30B on three machines and a spare over the links of [BB] {environment.upper()}.",
        60,
        machines,
        visits,
        duration_s=4 * hour_s,
        meter=Meter.PIPELINE,
        size=MODELS["llama-30b"],
        region_link_s=delays,
    )


def _symmetric(delays: Mapping[tuple[str, str], float]) -> Mapping[tuple[str, str], float]:
    return {**delays, **{(other, one): delay_s for (one, other), delay_s in delays.items()}}


def _same(
    megabit_per_s: float, delay_s: float
) -> tuple[Mapping[str, float], Mapping[tuple[str, str], float]]:
    sites = ("California", "New Jersey", "Canada")
    return {"": megabit_per_s * 125_000}, {
        (one, other): delay_s for one in sites for other in sites
    }


_BLOOMBEE_LINKS: Final = {
    "e1": _same(45_000, 0.0005),
    "e2": _same(500, 0.025),
    "e3": _same(250, 0.050),
    "e4": _same(125, 0.075),
    "e5": _same(20, 0.100),
    # A machine has one uplink here, so it is the slower of its two lines.
    "e6": (
        {"": 305 * 125_000, "California": 280 * 125_000, "New Jersey": 347 * 125_000},
        _symmetric(
            {
                ("California", "New Jersey"): 0.035,
                ("California", "Canada"): 0.035,
                ("New Jersey", "Canada"): 0.010,
                ("New Jersey", "New Jersey"): 0.001,
            }
        ),
    ),
}


def _bloom_server(rng: Random, index: int, region: str = "") -> Machine:
    (max_blocks,) = rng.choices(list(BLOOM_CARDS), weights=list(BLOOM_CARDS.values()))
    rate = rng.uniform(*BLOOM_TOKENS_PER_S)
    return Machine(_peer(index), max_blocks, 1 / (rate * max_blocks), region=region)


def _peer(index: int) -> PeerId:
    return PeerId(f"node-{index:04}")


_BUILDERS: Final[Mapping[str, Callable[[str, Random], Scenario]]] = {
    "petals-206": petals_206,
    **{f"bloombee-{environment}": bloombee for environment in _BLOOMBEE_LINKS},
    "flash-crowd": flash_crowd,
    "region-lost": region_lost,
    "liar": liar,
    "jitter": jitter,
    "two-thousand": two_thousand,
}
NAMES: Final = tuple(_BUILDERS)
